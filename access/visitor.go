package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// peer is what a connection shows of its other end, before any credentials.
type peer struct {
	addr  netip.Addr
	text  string   // IP:PORT
	certs []string // subjects of its verified certificate
	away  bool     // it has come by way of another machine: it is not on this one, whatever addr says
}

// Visitor is the user at the other end of a connection, with the user's rights. It belongs to the
// connection's goroutine. Each call applies the rules that are in force at that moment; but between
// Present and Anonymous, for the length of an HTTP request, calls apply the rules that were in
// force at Present. A nil Visitor may do everything.
type Visitor struct {
	guard *Guard
	peer  peer
	state func() tls.ConnectionState // nil: no TLS, or the certificate has been read

	rules  *table // the fields below are made from it
	pinned bool   // an HTTP request is served: rules stay until its end

	base []*rule    // rules of anyone and of the certificate that apply to this peer
	who  *principal // user by credentials; nil: none
	held []*rule    // base and the rules of who

	login string            // name of a user who has logged in until the connection ends
	hash  []byte            // of login's password; a new password in the file ends the login
	memo  [sha256.Size]byte // salted hash of the credentials of who; zero: none
}

// Visit returns the visitor of a connection. It returns nil if everything is allowed: without a
// guard, and for peers on this machine with protection by default. A connection with a method
// ConnectionState is over TLS; its client certificate counts if it was verified.
func (g *Guard) Visit(c net.Conn) *Visitor {
	if g == nil {
		return nil
	}
	v := &Visitor{guard: g, peer: peerOf(c.RemoteAddr())}
	forwarded, ok := c.(Forwarded)
	if ok {
		v.peer = g.forwardedPeer(forwarded)
	}
	if g.Protects() && g.isHere(v.peer) {
		return nil
	}
	if ok {
		return v
	}
	if secure, ok := c.(interface{ ConnectionState() tls.ConnectionState }); ok {
		v.state = secure.ConnectionState
	}
	return v
}

// peerOf reads an address. Pipes and Unix sockets count as this machine. An address that cannot be
// parsed matches no rule with from=.
func peerOf(a net.Addr) peer {
	if a == nil {
		return peer{}
	}
	p := peer{text: a.String()}
	if at, err := netip.ParseAddrPort(p.text); err == nil {
		p.addr = at.Addr().Unmap().WithZone("")
	} else if network := a.Network(); network == "unix" || network == "pipe" {
		p.addr = netip.IPv6Loopback()
	}
	return p
}

// Enter returns nil if there is anything that the visitor may do.
func (v *Visitor) Enter() error { return v.need(0, target{kind: anything}) }

// Some returns nil if the visitor has all of these rights for something, though perhaps not each of
// them for the same thing.
func (v *Visitor) Some(need Rights) error { return v.need(need, target{kind: anything}) }

// Known reports whether the visitor has proved by credentials who they are.
func (v *Visitor) Known() bool { return v != nil && v.who != nil }

// Key returns nil if the visitor has all of these rights for a key of a database.
func (v *Visitor) Key(need Rights, d Database, key []byte) error {
	return v.need(need, target{kind: aKey, db: d, key: key})
}

// Database returns nil if the visitor has all of these rights for a whole database.
func (v *Visitor) Database(need Rights, d Database) error {
	return v.need(need, target{kind: aDatabase, db: d})
}

// Server returns nil if the visitor has all of these rights for all databases, and so for what
// belongs to no database.
func (v *Visitor) Server(need Rights) error { return v.need(need, target{kind: theServer}) }

// Service returns nil if the visitor has all of these rights for a service: Counter, Lock, Sequence
// or Quota.
func (v *Visitor) Service(need Rights, name string) error {
	return v.need(need, target{kind: aService, service: name})
}

// While watches the rights for a whole database, or for the whole server if d is nil, until done is
// called: when a new access file takes these rights away, cut is called. Only rights by address and
// certificate count: a visitor who has the rights by credentials alone is cut at once.
func (v *Visitor) While(need Rights, d Database, cut func()) (done func()) {
	if v == nil {
		return func() {}
	}
	what := target{kind: theServer}
	if d != nil {
		what = target{kind: aDatabase, db: d}
	}
	return v.while(need, what, cut)
}

// WhileService is While for a service.
func (v *Visitor) WhileService(need Rights, name string, cut func()) (done func()) {
	if v == nil {
		return func() {}
	}
	return v.while(need, target{kind: aService, service: name}, cut)
}

func (v *Visitor) while(need Rights, what target, cut func()) (done func()) {
	g, s := v.guard, &stream{peer: v.peer, need: need, what: what, cut: cut}
	g.watch(s)
	// The rules may have changed after the caller looked at them and before g.watch: no later
	// reload would cut this stream.
	g.cutUnlessAllowed(s)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.streams, s)
	}
}

// need returns nil if the rules that cover the target together have all of these rights.
func (v *Visitor) need(need Rights, what target) error {
	if v == nil {
		return nil
	}
	if v.guard.Protects() {
		v.guard.refused(v.peer)
		return errRemote
	}
	if !v.pinned {
		v.refresh()
	}
	missing, covered := need, false
	for _, r := range v.held {
		if what.coveredBy(r) {
			missing &^= r.rights
			covered = true
		}
		if covered && missing == 0 {
			return nil
		}
	}
	return v.denied(missing, what)
}

// denied makes the error of a request for which rights are missing.
func (v *Visitor) denied(missing Rights, what target) error {
	names := v.names()
	switch {
	case names == "" && len(v.held) == 0:
		return &Denied{Reason: "this needs a user and password, a token, or a certificate", Unknown: true}
	case names == "":
		return &Denied{Reason: fmt.Sprintf("without a user or token there is no right to %s for %s", missing, what), Unknown: true}
	case missing == 0:
		return &Denied{Reason: names + " has no rights here"}
	}
	return &Denied{Reason: fmt.Sprintf("%s has no right to %s for %s", names, missing, what)}
}

// Who returns what tells one client from another when something is shared out among them: the name
// that the visitor has proved, or else the address of the connection.
func (v *Visitor) Who(c Client) string {
	if name := v.Name(); name != "" {
		return "user " + name
	}
	return "address " + network(peerOf(textAddr(c.Address)).addr).String()
}

// Name returns the name that the visitor has proved, "" if none.
func (v *Visitor) Name() string {
	if v == nil || v.rules == nil {
		return ""
	}
	return v.names()
}

// names returns the name that the visitor has proved, "" if none.
func (v *Visitor) names() string {
	if v.who != nil {
		return v.who.name
	}
	for _, subject := range v.peer.certs {
		for _, p := range v.rules.certs[subject] {
			return p.name
		}
	}
	return ""
}

// refresh brings base, who and held up to date, if the rules have changed or the certificate has
// become known.
func (v *Visitor) refresh() {
	t := v.guard.rules.Load()
	if t == v.rules && v.state == nil {
		return
	}
	v.readCertificate()
	v.rules, v.who, v.memo = t, nil, [sha256.Size]byte{}
	v.base = v.base[:0]
	v.add(t.anyone)
	var found []*principal
	for _, subject := range v.peer.certs {
		for _, p := range t.certs[subject] {
			if !slices.Contains(found, p) {
				found = append(found, p)
				v.add(p.rules)
			}
		}
	}
	if p := t.names[v.login]; p != nil && v.login != "" && bytes.Equal(p.hash, v.hash) {
		v.who = p
	}
	v.hold()
}

// add appends to base those rules that apply to this peer's address.
func (v *Visitor) add(rules []rule) {
	for i := range rules {
		if rules[i].holdsFrom(v.peer, v.guard.isHere) {
			v.base = append(v.base, &rules[i])
		}
	}
}

// hold makes held from base and the rules of who.
func (v *Visitor) hold() {
	v.held = append(v.held[:0], v.base...)
	if v.who == nil {
		return
	}
	for i := range v.who.rules {
		if r := &v.who.rules[i]; r.holdsFrom(v.peer, v.guard.isHere) {
			v.held = append(v.held, r)
		}
	}
}

// readCertificate reads the subjects of the certificate after the handshake.
func (v *Visitor) readCertificate() {
	if v.state == nil {
		return
	}
	state := v.state()
	if !state.HandshakeComplete {
		return
	}
	v.state = nil
	v.peer.certs = subjects(&state)
}

func subjects(state *tls.ConnectionState) []string {
	if len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return nil
	}
	return subjectsOf(state.VerifiedChains[0][0])
}

func subjectsOf(c *x509.Certificate) []string {
	var all []string
	if c.Subject.CommonName != "" {
		all = append(all, c.Subject.CommonName)
	}
	all = append(append(all, c.DNSNames...), c.EmailAddresses...)
	for _, uri := range c.URIs {
		all = append(all, uri.String())
	}
	return all
}

// Login makes the visitor this user until the connection ends or the file has another password for
// the user. It reports whether name and password are right. A wrong password may take seconds.
func (v *Visitor) Login(ctx context.Context, name string, password []byte) bool {
	if v == nil || v.guard.Protects() {
		return false
	}
	v.refresh()
	p, err := v.guard.password(ctx, v.peer, v.rules, name, password)
	if err != nil {
		return false
	}
	v.login, v.hash, v.who = p.name, p.hash, p
	v.hold()
	return true
}
