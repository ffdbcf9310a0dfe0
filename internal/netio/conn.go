// Package netio is a client connection as the protocols see it: bytes that were read and are not
// yet used, and replies that leave together, after the updates that they acknowledge are durable.
// It also limits the time and the memory that the requests of all connections take.
//
// The way of a request:
//
//	read.go     WaitByte waits for its first bytes, in a loop (loop.go), Need and Fill for the rest
//	            … a protocol serves it and appends the reply to Out …
//	write.go    Flush waits for the log and sends Out, at the latest before the next wait
//
// The rest is what makes these waits safe: buffers that grow and are given back (buffer.go), limits
// of time (limits.go), the account of memory (account.go), and clients that have gone (heed.go).
package netio

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"gotycoon/access"
	"gotycoon/db/owed"
	"gotycoon/internal/metrics"
)

var (
	// ErrTooLarge is returned by Fill and Need when a request is larger than Options.MaxRequest or
	// Limits allow, and by Hold and Declare when it needs more memory than one request may hold.
	ErrTooLarge = errors.New("request is larger than the connection's limit")

	// ErrStopped is returned by WaitByte after Stop.
	ErrStopped = errors.New("the connection is being stopped")
)

// Options of a connection.
type Options struct {
	Timeout    time.Duration // limit of one wait for bytes or send space (-tout); 0: that of Limits
	MaxRequest int           // largest read buffer in bytes; 0 means 600 MiB
	Access     *access.Guard // who may do what; nil: everybody may do everything
	Limits     *Limits       // shared with other connections; nil: there are none
	Loops      *Loops        // where connections rest that the protocol lets rest; nil: nowhere

	// Patient: the client holds something as long as it is connected (a lock, for example), so
	// neither slow requests nor silence end the connection.
	Patient bool
}

// Conn is one client connection. It belongs to one goroutine at a time; only Stop, Cut and Gone may
// be called by others.
//
// Replies are appended to Out while requests are served, and leave with Flush. Callers pass &Owed
// to each update, which notes there what Flush has to wait for. So a batch of pipelined requests
// waits for the log once.
//
// A connection takes its buffers when bytes have arrived, and gives them back when it waits for its
// next request: an idle connection has none.
type Conn struct {
	Out  []byte       // replies not yet sent
	Owed owed.Pending // updates acknowledged by Out

	Ending  context.Context   // ends when the port stops; nil: it does not tell
	Visitor *access.Visitor   // the client, for access rules; nil: everything is allowed
	Member  bool              // the client has proved that it is a server of the cluster
	Meter   *metrics.Recorder // measures the requests; nil: they are not measured

	net net.Conn
	resting
	raw  *rawSocket // nil when net is not a plain socket, or rests in a loop
	wait waiter     // nil when net cannot wait without a buffer
	opts Options
	pool *sync.Pool
	bufs *buffers // nil while idle; bufs.in is the read buffer, bufs.out the first array of Out
	r, w int      // unread bytes are bufs.in[r:w]

	held      int64 // bytes of the account
	kept      int64 // of held: those that stay until the connection ends
	overdrawn bool  // Hold takes bytes even if they are not there, see Overdraw
	precious  bool  // Out is sent even if there is no memory for it, see Overdraw
	broken    error // why a part of a reply could not be sent: nothing may be sent behind it

	want  int       // declared length of the request, from the first unread byte on
	began time.Time // first wait for the rest of the request being read; zero: there was none
	came  int64     // bytes of the request that have come since began

	serving serving // the request being served, if it takes long

	standing *standing // whom to ask before anything is sent; nil: nobody
	epoch    uint64    // of the beginning
	streams  bool      // see Streams
	replies  replies   // of Out, that wait for other servers

	mu      sync.Mutex // protects the fields below, which Stop uses
	idle    bool       // the latest read waits for the first byte of a request
	limited bool       // a read deadline is set
	stopBy  time.Time  // reads end here; zero unless stopping
}

// New wraps an accepted connection. The caller keeps the duty to close c.
func New(c net.Conn, pool *sync.Pool, o Options) *Conn {
	if o.MaxRequest == 0 {
		o.MaxRequest = 600 << 20
	}
	conn := &Conn{pool: pool, opts: o}
	if o.Limits != nil {
		conn.Owed.Purse = conn
	}
	conn.stand()
	conn.Replace(c)
	return conn
}

// waiter is a connection that can wait for bytes without a buffer for them, as a plain socket can.
type waiter interface{ Wait() error }

// Replace makes n the network connection in place of the present one, of which n is another form: a
// port that speaks plain text and TLS learns only from the first byte which of them a client
// speaks. Nothing may have been read or written yet.
func (c *Conn) Replace(n net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.net = n
	c.raw = newRawSocket(c)
	c.wait, _ = n.(waiter)
	c.Visitor = c.opts.Access.Visit(n)
}

// rawSocket moves bytes with the system calls of package rawio. It also lets a connection wait for
// bytes without a buffer for them.
type rawSocket struct {
	c  *Conn
	rc syscall.RawConn

	onReadable func(fd uintptr) bool // readSome as a value, made once
	onWritable func(fd uintptr) bool // writeSome
	err        error                 // result of the latest callback
	rest       []byte                // still to be written
	armed      bool                  // a write deadline is set
	counted    int                   // bytes of the account to be given back when the reply is sent
	size       int                   // bytes that are held while the reply is sent
	began      time.Time             // first wait for send space for the reply; zero: none yet
	sent       int                   // bytes of the reply that were sent since began
	burst      int                   // bytes read since others could run
}

// newRawSocket returns nil if the connection is no plain socket, for example a pipe in a test.
func newRawSocket(c *Conn) *rawSocket {
	sc, ok := c.net.(syscall.Conn)
	if _, rests := c.net.(*Bare); rests || !ok {
		return nil
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	s := &rawSocket{c: c, rc: rc}
	s.onReadable, s.onWritable = s.readSome, s.writeSome
	return s
}

// Secure reports whether the client's connection is encrypted by TLS.
func (c *Conn) Secure() bool {
	if f, ok := c.net.(access.Forwarded); ok {
		return f.Client().Secure
	}
	_, ok := c.net.(interface{ ConnectionState() tls.ConnectionState })
	return ok
}

// Stopping reports whether Stop was called.
func (c *Conn) Stopping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.stopBy.IsZero()
}

// Stop ends the connection's reads: at once if it waits for a request, after grace within a
// request. The request being served is finished and answered. Any goroutine may call Stop.
func (c *Conn) Stop(grace time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopBy = time.Now().Add(grace)
	if c.bare != nil {
		if c.rouse() {
			c.drained, c.term = false, 0
			go c.resume()
		}
		return nil
	}
	if _, ok := c.net.(*Bare); ok {
		return nil // it has not rested yet: its owner asks before it does
	}
	if c.idle {
		return c.net.SetReadDeadline(time.Unix(1, 0))
	}
	return c.net.SetReadDeadline(c.stopBy)
}

// Cut ends the connection, whatever it is doing. Any goroutine may call Cut.
func (c *Conn) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bare != nil {
		c.bare.Cut()
		return
	}
	c.net.Close()
}

// Close gives the buffers back. It does not close the network connection.
func (c *Conn) Close() {
	c.r, c.w = 0, 0
	c.parkBuffers()
	c.kept = 0
	c.letGo(0)
	c.unstand()
}
