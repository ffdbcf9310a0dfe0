package member

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode"

	"gotycoon/access"
	"gotycoon/client/wire/frame"
	"gotycoon/internal/netio"
)

// Request is what a member has opened a connection for.
type Request struct {
	Kind   frame.MemberKind
	Name   string         // that the member gives itself
	Client *access.Client // for whom; nil: for the member itself
}

// Acceptor accepts connections of members. Many goroutines may use it.
type Acceptor struct {
	Secrets *Secrets      // nil: members show certificates
	Guard   *access.Guard // counts wrong proofs; nil: nobody does
	Logger  *slog.Logger

	// Serves returns nil if connections of this kind can be served now.
	Serves func(Request) *Refused

	refusals refusals
}

// refusals limits the log lines about refused openers: to some in a second, and to one in a while
// about the same opener, which comes again and again.
type refusals struct {
	mu     sync.Mutex // protects the fields below
	second time.Time
	lines  int // in this second
	left   int // out since the last line
	known  map[string]*refusal
}

// refusal is why an opener is refused, as the log has it.
type refusal struct {
	told time.Time
	left int // lines that were left out since
}

const (
	linesPerSecond = 5
	tellAgain      = time.Minute
	mostRefusals   = 1000 // that are remembered
)

// ErrNoCluster is the error of a server without a secret, about a connection without a certificate.
var ErrNoCluster = errors.New("this server was not given the secret of a cluster (-cluster-secret), and the connection shows no verified certificate (-tls-ca)")

var (
	errProof = errors.New("the other server does not know the secret of the cluster: compare the files of -cluster-secret, or the other server is no member")
	errEager = errors.New("the other server sends before this server has let it in")
	errSlow  = fmt.Errorf("the other server has proved nothing within %v", Limit)
)

// Accept does the handshake of an opener whose first byte is buffered. When it returns nil, nothing
// is buffered, and the connection speaks the protocol of the request's kind. After an error the
// connection is to be closed without a further word; the log has the error.
//
// certificate returns nil if the connection shows the certificate of a member.
func (a *Acceptor) Accept(c *netio.Conn, from net.Addr, certificate func() error) (Request, error) {
	// The time limit closes the connection: a peer that has proved nothing is owed no reply.
	late := time.AfterFunc(Limit, c.Cut)
	r, err := a.accept(c, from, certificate)
	if !late.Stop() {
		err = errSlow
	}
	if err != nil {
		a.tell(from, r, err)
	}
	return r, err
}

func (a *Acceptor) accept(c *netio.Conn, from net.Addr, certificate func() error) (r Request, err error) {
	keys := a.Secrets.all()
	challenge := frame.MemberChallenge{Version: frame.MemberVersion, Method: frame.MemberBySecret}
	if keys == nil {
		challenge.Method = frame.MemberByCertificate
		if err := certificate(); err != nil {
			return r, err
		}
	}
	opening, sent, err := next(c, frame.DecodeMemberOpening)
	if err != nil {
		return r, err
	}
	r.Kind, r.Name = opening.Kind, printable(opening.Name)
	_, _ = rand.Read(challenge.Nonce[:]) // documented never to fail
	c.Out = frame.AppendMemberChallenge(c.Out, challenge)
	sent = frame.AppendMemberChallenge(sent, challenge)
	proof, raw, err := next(c, frame.DecodeMemberProof) // which flushes
	if err != nil {
		return r, err
	}
	key, known := match(keys, proof.MAC, sent, raw[frame.MemberMAC:])
	if keys != nil && !known {
		a.Guard.WrongProof(context.Background(), from)
		return r, errProof
	}
	if len(c.Buffered()) > 0 {
		return r, errEager
	}
	if r.Client, err = clientOf(proof.Client); err != nil {
		return r, err
	}
	welcome := frame.MemberWelcome{}
	refused := a.Serves(r)
	if refused != nil {
		welcome.Status, welcome.Reason = refused.Status, refused.Reason
	}
	welcome.MAC = welcomeMAC(key, append(sent, raw...), frame.AppendMemberWelcome(nil, welcome))
	c.Out = frame.AppendMemberWelcome(c.Out, welcome)
	if err := c.Flush(); err != nil {
		return r, err
	}
	if refused != nil { // not a nil *Refused in an error
		return r, refused
	}
	return r, nil
}

// next waits for the message that decode reads, and takes it from the buffer. It returns the
// message with a copy of its bytes.
func next[T any](c *netio.Conn, decode func([]byte) (T, int, error)) (message T, raw []byte, err error) {
	for {
		message, n, err := decode(c.Buffered())
		switch {
		case err == nil:
			raw = append(raw, c.Buffered()[:n]...)
			if message, _, err = decode(raw); err == nil { // slices of raw, not of the buffer
				c.Advance(n)
			}
			return message, raw, err
		case !errors.Is(err, frame.ErrShort):
			return message, nil, err
		}
		if err := c.Need(n); err != nil {
			return message, nil, err
		}
	}
}

// clientOf reads the client of a proof, if it names one.
func clientOf(text []byte) (*access.Client, error) {
	if len(text) == 0 {
		return nil, nil // a connection of the member itself, no error
	}
	c, err := frame.DecodeMemberClient(text)
	if err != nil {
		return nil, fmt.Errorf("its client: %w", err)
	}
	if _, err := netip.ParseAddrPort(c.Address); err != nil {
		return nil, fmt.Errorf("the address of its client: %w", err)
	}
	client := access.Client(c)
	return &client, nil
}

// tell logs why an opener is refused, if that is due.
func (a *Acceptor) tell(from net.Addr, r Request, err error) {
	t := &a.refusals
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	one := t.of(from, r.Name, err)
	if !one.told.IsZero() && now.Sub(one.told) < tellAgain {
		one.left++
		return
	}
	if now.Sub(t.second) >= time.Second {
		t.second, t.lines = now, 0
	}
	if t.lines == linesPerSecond {
		t.left++
		return
	}
	t.lines++
	line := fmt.Sprintf("member: refused %s", from)
	if r.Name != "" {
		line += fmt.Sprintf(", which says that it is %q", r.Name)
	}
	line += ": " + err.Error()
	if one.left > 0 {
		line += fmt.Sprintf(" (%d times more in the last %v)", one.left, now.Sub(one.told).Round(time.Second))
	}
	if t.left > 0 {
		line += fmt.Sprintf(" (and %d more lines like this)", t.left)
	}
	a.Logger.Warn(line)
	t.left, one.told, one.left = 0, now, 0
}

// of returns what is known of an opener's refusals. An opener is a host with a name. When there are
// too many of them, all are forgotten: the limit for a second is then left. mu is held.
func (t *refusals) of(from net.Addr, name string, err error) *refusal {
	host, _, _ := net.SplitHostPort(from.String())
	key := host + " " + name + " " + err.Error()
	if one := t.known[key]; one != nil {
		return one
	}
	if t.known == nil || len(t.known) == mostRefusals {
		t.known = map[string]*refusal{}
	}
	one := new(refusal)
	t.known[key] = one
	return one
}

// printable makes a text of another machine safe for the log.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}
