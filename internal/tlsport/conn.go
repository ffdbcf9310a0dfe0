package tlsport

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// handshakeByte begins every connection of TLS: the record type of a handshake.
const handshakeByte = 0x16

var (
	errPlaintext = errors.New("the client does not speak TLS")
	errNotOpen   = errors.New("the connection is not open yet")
)

// What a client speaks; 0 means that it is not known yet.
const (
	plaintext = 1 + iota
	overTLS
)

// Conn is a connection to a port of a Guard. Before Open it is not known whether it speaks TLS.
type Conn struct {
	net.Conn // the socket, for addresses; deadlines are below
	guard    *Guard
	socket   *socket
	secure   *tls.Conn

	speaks atomic.Int32 // what the client speaks

	// Used by the goroutine that reads.
	opened bool
	err    error // why the connection cannot be opened
	held   bool  // Wait has read the byte in first
	first  [1]byte

	mu    sync.Mutex // protects the fields below, and the read deadline of the socket
	until time.Time  // read deadline of the user
	limit time.Time  // read deadline of Open; zero outside of Open
}

// Wrap returns an accepted connection as a *Conn. It does not wait.
func (g *Guard) Wrap(c *net.TCPConn) *Conn {
	s, err := newSocket(c) // fails for a closed socket
	return &Conn{Conn: c, guard: g, socket: s, secure: tls.Server(s, g.config), opened: err != nil, err: err}
}

// Open finds out what the client speaks, and does the handshake. It returns c for TLS. For
// plaintext, which the options must allow, it returns the bare connection. After an error, which is
// in the log, the connection must be closed.
func (c *Conn) Open() (net.Conn, error) {
	if !c.opened {
		c.opened = true
		c.err = c.open()
	}
	switch {
	case c.err != nil:
		return nil, c.err
	case c.speaks.Load() == plaintext:
		return c.socket.TCPConn, nil
	}
	return c, nil
}

func (c *Conn) open() error {
	defer c.setLimit(time.Time{})
	// With plaintext allowed, a client may be idle before its first byte.
	if !c.guard.opts.Plaintext {
		c.setLimit(time.Now().Add(c.guard.opts.Handshake))
	}
	var head [sniffSize]byte
	n, err := c.socket.peek(head[:])
	switch {
	case err != nil:
		c.guard.tellFailed(c.RemoteAddr(), err)
		return err
	case head[0] == handshakeByte:
		return c.handshake()
	case c.guard.opts.Plaintext:
		c.speaks.Store(plaintext)
		return nil
	}
	c.refuse(head[:n])
	return errPlaintext
}

func (c *Conn) handshake() error {
	limit := time.Now().Add(c.guard.opts.Handshake)
	c.setLimit(limit)
	if err := c.socket.SetWriteDeadline(limit); err != nil {
		return err
	}
	version := c.guard.opts.Files.Generation()
	if err := c.secure.Handshake(); err != nil {
		c.guard.tellFailed(c.RemoteAddr(), err)
		return err
	}
	c.speaks.Store(overTLS)
	c.guard.enter(c, version)
	return c.socket.SetWriteDeadline(time.Time{})
}

// setLimit sets the read deadline of Open. The user's read deadline stays in force beside it.
func (c *Conn) setLimit(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = t
	_ = c.applyDeadline() // fails for a closed socket
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return c.applyDeadline()
}

// applyDeadline sets the earlier of the two read deadlines. The caller holds mu.
func (c *Conn) applyDeadline() error {
	t := c.until
	if !c.limit.IsZero() && (t.IsZero() || c.limit.Before(t)) {
		t = c.limit
	}
	return c.socket.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn, with a difference: the time until t limits each wait for
// send space, not all of them together.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.socket.SetWriteDeadline(t) }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Wait waits until a byte can be read. It needs no read buffer meanwhile. It must not be used with
// plaintext.
func (c *Conn) Wait() error {
	if c.held {
		return nil
	}
	n, err := c.secure.Read(c.first[:])
	if c.held = n > 0; c.held {
		return nil
	}
	return err
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if _, err := c.Open(); err != nil {
		return 0, err
	}
	switch {
	case c.speaks.Load() == plaintext:
		return c.socket.Read(p)
	case !c.held || len(p) == 0:
		return c.secure.Read(p)
	}
	p[0], c.held = c.first[0], false
	c.socket.dry = true
	n, _ := c.secure.Read(p[1:]) // an error comes again with the next read
	c.socket.dry = false
	return 1 + n, nil
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	switch c.speaks.Load() {
	case overTLS:
		return c.secure.Write(p)
	case plaintext:
		return c.socket.Write(p)
	}
	return 0, errNotOpen
}

// CloseWrite tells the client that no more data will follow.
func (c *Conn) CloseWrite() error {
	if c.speaks.Load() == overTLS {
		if err := c.secure.CloseWrite(); err != nil {
			return err
		}
	}
	return c.socket.CloseWrite()
}

// Close implements net.Conn. It does not wait for the client.
func (c *Conn) Close() error {
	c.guard.leave(c)
	if c.speaks.Load() == overTLS {
		c.socket.closing.Store(true)
		return c.secure.Close()
	}
	return c.socket.Close()
}

// ConnectionState returns the state of TLS. It is empty before Open and for plaintext.
func (c *Conn) ConnectionState() tls.ConnectionState {
	if c.speaks.Load() == overTLS {
		return c.secure.ConnectionState()
	}
	return tls.ConnectionState{}
}

// Socket returns the socket below TLS, for checks whether the client is still there.
func (c *Conn) Socket() syscall.Conn { return c.socket.TCPConn }

// TCP returns the socket below TLS, for options of the system and to end the connection without a
// word of TLS.
func (c *Conn) TCP() *net.TCPConn { return c.socket.TCPConn }

// Peer is the identity in a client certificate.
type Peer struct {
	CommonName string   // of the subject
	DNSNames   []string // subject alternative names
	URIs       []string
	Serial     string // number of the certificate, hexadecimal
}

// PeerOf returns the identity of the other side of a connection. ok is false without TLS, and
// without a verified certificate.
func PeerOf(c net.Conn) (p Peer, ok bool) {
	secure, ok := c.(interface{ ConnectionState() tls.ConnectionState })
	if !ok {
		return p, false
	}
	state := secure.ConnectionState()
	if len(state.VerifiedChains) == 0 {
		return p, false
	}
	leaf := state.VerifiedChains[0][0]
	p = Peer{CommonName: leaf.Subject.CommonName, DNSNames: leaf.DNSNames, Serial: leaf.SerialNumber.Text(16)}
	for _, u := range leaf.URIs {
		p.URIs = append(p.URIs, u.String())
	}
	return p, true
}
