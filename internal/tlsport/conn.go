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

// What a client speaks. At first nothing is known.
const (
	plaintext = 1 + iota
	overTLS
)

// Conn is a connection to a port of a Guard. Before Open it is not known what it speaks.
type Conn struct {
	net.Conn // the socket, for addresses; deadlines are below
	guard    *Guard
	socket   *socket
	secure   *tls.Conn

	speaks atomic.Int32 // what is known of the client: nothing, plaintext or overTLS

	// Of the goroutine that reads.
	opened bool
	err    error // why it cannot be opened
	held   bool  // Wait has read first
	first  [1]byte

	mu    sync.Mutex // protects the fields below, and the read deadline of the socket
	until time.Time  // read deadline that the user has set
	limit time.Time  // that of Open; zero outside
}

// Wrap returns a connection that was accepted. It does not wait.
func (g *Guard) Wrap(c *net.TCPConn) *Conn {
	s, err := newSocket(c) // an error is that of a socket that is closed
	return &Conn{Conn: c, guard: g, socket: s, secure: tls.Server(s, g.config), opened: err != nil, err: err}
}

// Open finds out what the client speaks, and does the handshake. It returns c, or for plaintext, which the options must allow, the bare
// connection. After an error, about which the log has a line, the connection must be closed.
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
	if !c.guard.opts.Plaintext { // clients without TLS may be idle for ever
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
	version := c.guard.opts.Files.Version()
	if err := c.secure.Handshake(); err != nil {
		c.guard.tellFailed(c.RemoteAddr(), err)
		return err
	}
	c.speaks.Store(overTLS)
	c.guard.enter(c, version)
	return c.socket.SetWriteDeadline(time.Time{})
}

// setLimit sets the read deadline of Open, which holds beside the user's.
func (c *Conn) setLimit(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = t
	_ = c.applyDeadline() // of a socket that is closed
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return c.applyDeadline()
}

// applyDeadline sets the earlier one. The caller holds mu.
func (c *Conn) applyDeadline() error {
	t := c.until
	if !c.limit.IsZero() && (t.IsZero() || c.limit.Before(t)) {
		t = c.limit
	}
	return c.socket.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn. The time until then is what each wait for send space may take, not the whole.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.socket.SetWriteDeadline(t) }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Wait waits until a byte can be read, without a buffer for it. Of plaintext it is not to be used.
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
	n, _ := c.secure.Read(p[1:]) // what is wrong the next read finds, too
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

// CloseWrite tells the client that nothing more will come.
func (c *Conn) CloseWrite() error {
	if c.speaks.Load() == overTLS {
		if err := c.secure.CloseWrite(); err != nil {
			return err
		}
	}
	return c.socket.CloseWrite()
}

// Close implements net.Conn. It waits for nobody.
func (c *Conn) Close() error {
	c.guard.leave(c)
	if c.speaks.Load() == overTLS {
		c.socket.closing.Store(true)
		return c.secure.Close()
	}
	return c.socket.Close()
}

// ConnectionState tells what was agreed on with the client; before Open, and for plaintext, it is empty.
func (c *Conn) ConnectionState() tls.ConnectionState {
	if c.speaks.Load() == overTLS {
		return c.secure.ConnectionState()
	}
	return tls.ConnectionState{}
}

// Socket returns the socket below TLS, for those who want to know whether the client is still there.
func (c *Conn) Socket() syscall.Conn { return c.socket.TCPConn }
