package member

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"gotycoon/access"
	"gotycoon/client/wire/frame"
)

// Limit is the longest time of a handshake, on both sides.
const Limit = 10 * time.Second

// Options of a connection to another member.
type Options struct {
	Secrets *Secrets         // nil: Dial makes a TLS connection that shows a certificate
	Kind    frame.MemberKind // what the connection is for
	Name    string           // of this server, for the logs of the other; at most 255 bytes
	Client  *access.Client   // for whom the connection is; nil: for this server itself

	// Dial connects; nil: by TCP, without TLS.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Refused is the error of a member that knows us and will not serve the kind.
type Refused struct {
	Status frame.MemberStatus
	Reason string
}

// Error returns the reason.
func (r *Refused) Error() string { return r.Reason }

// errClosed is all that an acceptor lets an opener know that it does not trust.
var errClosed = errors.New("that server has closed the connection during the handshake: that server knows no cluster (-cluster-secret), or another secret, " +
	"or does not take the certificate of this server; the log of that server says which")

// Dial opens a connection to the data port of another member. The handshake takes at most Limit,
// and ends with ctx. The caller then speaks the protocol of the kind.
func Dial(ctx context.Context, addr string, o Options) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	dial := o.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	c, err := dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	// When ctx ends, the handshake fails at once.
	unhook := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	err = o.open(c)
	if !unhook() && err == nil {
		err = ctx.Err() // the deadline in the past may be set any moment
	}
	if err == nil {
		return c, nil
	}
	c.Close()
	if cause := ctx.Err(); cause != nil && !errors.As(err, new(*Refused)) {
		err = cause
	}
	return nil, fmt.Errorf("opening a member connection to %s: %w", addr, err)
}

// open does the handshake.
func (o *Options) open(c net.Conn) error {
	opening := frame.MemberOpening{Version: frame.MemberVersion, Kind: o.Kind, Name: o.Name}
	_, _ = rand.Read(opening.Nonce[:]) // documented never to fail
	sent := frame.AppendMemberOpening(nil, opening)
	if _, err := c.Write(sent); err != nil {
		return err
	}
	challenge, raw, err := receive(c, frame.DecodeMemberChallenge)
	if err != nil {
		return err
	}
	sent = append(sent, raw...)
	proof, key, err := o.prove(challenge, sent)
	if err != nil {
		return err
	}
	begin := len(sent)
	sent = frame.AppendMemberProof(sent, proof)
	if _, err := c.Write(sent[begin:]); err != nil {
		return err
	}
	welcome, raw, err := receive(c, frame.DecodeMemberWelcome)
	if err != nil {
		return err
	}
	want := welcomeMAC(key, sent, raw)
	if !hmac.Equal(want[:], welcome.MAC[:]) {
		return errors.New("that server does not know the secret of the cluster, though it lets this server in: a server of another cluster has the address")
	}
	if welcome.Status != frame.MemberOpen {
		return &Refused{welcome.Status, printable(welcome.Reason)}
	}
	return nil
}

// prove makes the answer to a challenge, and the key for the other side's mac; nil without secret.
func (o *Options) prove(c frame.MemberChallenge, sent []byte) (p frame.MemberProof, key []byte, err error) {
	keys := o.Secrets.all()
	switch {
	case c.Version != frame.MemberVersion:
		return p, nil, fmt.Errorf("that server speaks version %d of the handshake and this server version %d: update the older program", c.Version, frame.MemberVersion)
	case c.Method == frame.MemberBySecret && keys == nil:
		return p, nil, errors.New("that server asks for the secret of the cluster, which this server was not given: -cluster-secret")
	case c.Method == frame.MemberByCertificate && keys != nil:
		return p, nil, errors.New("that server was not given the secret of the cluster, so this server does not trust it: -cluster-secret")
	case c.Method > frame.MemberBySecret:
		return p, nil, fmt.Errorf("that server asks for an unknown proof (%d): update the older program", c.Method)
	}
	if o.Client != nil {
		if p.Client, err = frame.AppendMemberClient(nil, frame.MemberClient(*o.Client)); err != nil {
			return p, nil, fmt.Errorf("the names in the client's certificate: %w", err)
		}
	}
	if keys != nil {
		key = keys[0]
		p.MAC = mac(key, openerLabel, sent, frame.AppendMemberProof(nil, p)[frame.MemberMAC:])
	}
	return p, key, nil
}

// receive reads a message of the acceptor, and not a byte behind it.
func receive[T any](c net.Conn, decode func([]byte) (T, int, error)) (message T, raw []byte, err error) {
	for {
		message, n, err := decode(raw)
		if !errors.Is(err, frame.ErrShort) {
			return message, raw, err
		}
		have := len(raw)
		raw = append(raw, make([]byte, n-have)...)
		if _, err := io.ReadFull(c, raw[have:]); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
				err = errClosed
			}
			return message, nil, err
		}
	}
}
