package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
)

// errCredentials is the error of wrong credentials, whatever is wrong about them.
var errCredentials = &Denied{Reason: "unknown user, wrong password or unknown token", Unknown: true}

// errLater is the error of credentials that were not compared, because their address has sent too
// many wrong ones.
var errLater = &Denied{Reason: "many wrong passwords come from this address, this one was not looked at: try again in some seconds", Unknown: true}

// Present makes the visitor the user of an Authorization header until the next Present or
// Anonymous; an empty header makes the visitor nobody. Wrong credentials are an error even where no
// credentials are needed. Comparing them may take seconds.
func (v *Visitor) Present(header []byte) error { return v.present(context.Background(), header) }

func (v *Visitor) present(ctx context.Context, header []byte) error {
	if v == nil || v.guard.Protects() {
		return nil
	}
	v.refresh()
	v.pinned = true
	if len(header) == 0 {
		v.forget()
		return nil
	}
	g := v.guard
	var room [512]byte
	memo := sha256.Sum256(append(append(room[:0], g.secret[:]...), header...))
	if v.who != nil && subtle.ConstantTimeCompare(memo[:], v.memo[:]) == 1 {
		return nil
	}
	v.forget()
	user, secret, kind := parseAuthorization(header)
	var err error
	switch kind {
	case basic:
		v.who, err = g.password(ctx, v.peer, v.rules, user, secret)
	case bearer:
		v.who = g.bearer(ctx, v.peer, v.rules, secret)
	case malformed:
		g.nonsense(ctx, v.peer)
	}
	switch {
	case err != nil:
		return err
	case v.who == nil:
		return errCredentials
	}
	v.memo = memo
	v.hold()
	return nil
}

// Outdated reports whether the rules have changed since Present: a request that has taken long
// should present its credentials again.
func (v *Visitor) Outdated() bool { return v != nil && v.pinned && v.guard.rules.Load() != v.rules }

// Current reports whether the rules are those that the latest call applied. Then what the latest
// call allowed is still allowed.
func (v *Visitor) Current() bool {
	return v == nil || v.guard.Protects() || v.guard.rules.Load() == v.rules
}

// Anonymous ends the HTTP request that Present has begun. Requests without credentials on the same
// connection follow: the visitor is nobody again, and each call applies the rules of its moment.
func (v *Visitor) Anonymous() {
	if v == nil || !v.pinned {
		return
	}
	v.pinned = false
	v.forget()
}

// forget makes the visitor nobody again.
func (v *Visitor) forget() {
	if v.who != nil {
		v.who, v.memo = nil, [sha256.Size]byte{}
		v.hold()
	}
}

// scheme is a kind of credentials.
type scheme byte

const (
	malformed scheme = iota
	basic
	bearer
)

// parseAuthorization splits the value of an Authorization header.
func parseAuthorization(header []byte) (user string, secret []byte, kind scheme) {
	name, value, _ := bytes.Cut(bytes.TrimSpace(header), []byte{' '})
	value = bytes.TrimSpace(value)
	switch {
	case bytes.EqualFold(name, []byte("bearer")) && len(value) > 0:
		return "", value, bearer
	case !bytes.EqualFold(name, []byte("basic")):
		return "", nil, malformed
	}
	value = bytes.TrimRight(value, "=")
	text := make([]byte, base64.RawStdEncoding.DecodedLen(len(value)))
	n, err := base64.RawStdEncoding.Decode(text, value)
	if err != nil {
		return "", nil, malformed
	}
	before, after, found := bytes.Cut(text[:n], []byte{':'})
	if !found {
		return "", nil, malformed
	}
	return string(before), after, basic
}

// Authorize decides about a request to a listener of net/http: it needs the right to read the whole
// server, and with admin set the right admin. The error is *Denied.
func (g *Guard) Authorize(r *http.Request, admin bool) error {
	if g == nil {
		return nil
	}
	v := &Visitor{guard: g, peer: peerOf(textAddr(r.RemoteAddr))}
	if g.Protects() {
		if g.isLocal(v.peer.addr) {
			return nil
		}
		return v.Enter()
	}
	if r.TLS != nil {
		v.peer.certs = subjects(r.TLS)
	}
	if err := v.present(r.Context(), []byte(strings.Join(r.Header.Values("Authorization"), ","))); err != nil {
		return err
	}
	if admin {
		return v.Server(Admin)
	}
	return v.Server(Read)
}

// textAddr is an address in its text form.
type textAddr string

// Network implements net.Addr.
func (textAddr) Network() string { return "tcp" }

// String implements net.Addr.
func (a textAddr) String() string { return string(a) }
