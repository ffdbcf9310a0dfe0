// Package netio is a client connection as the protocols of the data port see it: bytes read but not yet used,
// and replies that leave together, after the updates they acknowledge are safe.
package netio

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"gotycoon/access"
	"gotycoon/db/owed"
	"gotycoon/internal/metrics"
)

// flushSize is how many bytes of replies may gather while pipelined requests are served.
const flushSize = 64 << 10

var (
	// ErrTooLarge is returned by Fill when a request needs more buffer than Options.MaxRequest.
	ErrTooLarge = errors.New("request is larger than the connection's limit")

	// ErrStopped is returned by WaitByte after Stop.
	ErrStopped = errors.New("the connection is being stopped")
)

// Options of a connection.
type Options struct {
	Timeout    time.Duration // limit of one wait for more bytes of a request, or for send space (-tout); 0: that of Limits
	MaxRequest int           // largest read buffer in bytes; 0 means 600 MiB
	Access     *access.Guard // who may do what; nil: everybody everything
	Limits     *Limits       // shared with other connections; nil: none
	Patient    bool          // who is connected holds something: neither slow requests nor silence end the connection
}

// Conn is one client connection. It belongs to one goroutine, except for Stop.
//
// Replies are appended to Out while requests are served, pipelined ones too, and leave with Flush. Updates are
// given &Owed, so that a batch of pipelined requests waits for the log once.
//
// The buffers are taken when bytes have arrived and given back when the connection waits for its next request:
// an idle connection holds none.
type Conn struct {
	Out  []byte       // replies not yet sent
	Owed owed.Pending // updates acknowledged by Out

	Visitor *access.Visitor   // who is at the other end; nil: everything is allowed
	Meter   *metrics.Recorder // measures the requests; nil: nobody does

	net  net.Conn
	raw  *rawSocket // nil when net is not a plain socket
	wait waiter     // nil when net cannot wait without a buffer
	opts Options
	pool *sync.Pool
	bufs *buffers // nil while idle; its in part is in use, its out part is where Out began
	r, w int      // unread bytes are bufs.in[r:w]

	held      int64 // of the account
	kept      int64 // of held: until the connection ends
	overdrawn bool  // Hold gives what it is asked for, see Overdraw
	precious  bool  // what is in Out leaves whatever memory there is, see Overdraw
	broken    error // why a part of a reply has not been sent: nothing may come behind it

	want  int       // bytes of the request that have been declared, from the first unread one
	began time.Time // when the request being read had to be waited for; zero when it had not
	came  int64     // bytes of it that have come since

	serving serving // the request being served, when it takes long

	mu      sync.Mutex // protects the fields below, which Stop looks at
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
	conn.Replace(c)
	return conn
}

// Buffered returns the bytes read but not yet used. They are valid until the next Fill or WaitByte.
func (c *Conn) Buffered() []byte {
	if c.bufs == nil {
		return nil
	}
	return c.bufs.in[c.r:c.w]
}

// Advance marks the first n buffered bytes as used.
func (c *Conn) Advance(n int) { c.r += n }

// Need waits until n bytes are buffered. A request that could never be held is refused with ErrTooLarge, and one for which there is no
// memory now with ErrBusy, before any of its bytes are read; memory is taken as they come.
func (c *Conn) Need(n int) error { return c.NeedWith(n, 0) }

// NeedWith is Need for n bytes behind which there may be so many more of the same request: they shall not need another buffer.
func (c *Conn) NeedWith(n, more int) error {
	if len(c.Buffered()) >= n {
		return nil
	}
	if err := c.Declare(n); err != nil {
		return err
	}
	c.want = n + more
	defer func() { c.want = 0 }()
	for len(c.Buffered()) < n {
		if err := c.Fill(); err != nil {
			return err
		}
	}
	return nil
}

// WaitByte waits without a time limit until at least one byte is buffered. Before it waits it sends what is in
// Out. After Stop it returns ErrStopped instead of waiting.
func (c *Conn) WaitByte() error {
	c.endRequest()
	if c.r < c.w && len(c.Out) < flushSize {
		return nil
	}
	err := c.Flush()
	c.precious = false
	if err != nil || c.r < c.w {
		return err
	}
	c.r, c.w = 0, 0
	if err := c.beginIdle(); err != nil {
		return err
	}
	c.Meter.Idle()
	return c.measured(c.read())
}

// Fill reads at least one more byte of the current request, within the time limit.
func (c *Conn) Fill() error {
	if err := c.Flush(); err != nil { // the client may wait for earlier replies before it sends the rest
		return err
	}
	c.overdrawn, c.precious = false, false
	if err := c.makeRoom(); err != nil {
		return err
	}
	slow, err := c.beginLimited()
	if err != nil {
		return err
	}
	c.Meter.Leave()
	w := c.w
	err = c.measured(c.read())
	c.came += int64(c.w - w)
	if slow && errors.Is(err, os.ErrDeadlineExceeded) && !c.stopping() {
		return ErrSlow
	}
	return err
}

// measured tells the meter when bytes have arrived.
func (c *Conn) measured(err error) error {
	if err == nil {
		c.Meter.Arrived()
	}
	return err
}

// endRequest forgets what belongs to one request.
func (c *Conn) endRequest() {
	if !c.began.IsZero() {
		c.Restart()
	}
	c.endServing()
	c.want, c.overdrawn = 0, false
	if c.held > 0 {
		c.shrink()
		c.letGo(c.inputCost() + c.kept)
	}
}

// read reads what has arrived, at least one byte.
func (c *Conn) read() error {
	if c.raw != nil {
		return c.raw.read()
	}
	if c.wait != nil && c.w == 0 {
		c.parkBuffers()
		if err := c.wait.Wait(); err != nil {
			return err
		}
	}
	c.takeBuffers()
	n, err := c.net.Read(c.bufs.in[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	return err
}

// beginIdle prepares a read without a time limit.
func (c *Conn) beginIdle() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopBy.IsZero() {
		return ErrStopped
	}
	c.idle = true
	end := c.idleEnd()
	if !c.limited && end.IsZero() {
		return nil
	}
	c.limited = !end.IsZero()
	return c.net.SetReadDeadline(end)
}

// beginLimited prepares a read within a request. It also takes away a deadline that Stop meant for an idle read. slow tells that the
// deadline is the end of the request's time.
func (c *Conn) beginLimited() (slow bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = false
	c.limited = true
	limit, slow := c.deadline(time.Now())
	if !c.stopBy.IsZero() && c.stopBy.Before(limit) {
		limit, slow = c.stopBy, false
	}
	return slow, c.net.SetReadDeadline(limit)
}

// stopping tells whether Stop was called.
func (c *Conn) stopping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.stopBy.IsZero()
}

// Stop ends the connection's reads: at once when it waits for a request, after grace within one. What is being
// served is finished and answered. Any goroutine may call Stop.
func (c *Conn) Stop(grace time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopBy = time.Now().Add(grace)
	if c.idle {
		return c.net.SetReadDeadline(time.Unix(1, 0))
	}
	return c.net.SetReadDeadline(c.stopBy)
}

// Cut ends the connection whatever it is doing. Any goroutine may call Cut.
func (c *Conn) Cut() { c.net.Close() }

// Flush waits until the updates acknowledged by Out are safe and sends Out. When they cannot be made safe
// nothing is sent.
func (c *Conn) Flush() error {
	if err := c.Owed.Wait(); err != nil {
		c.Out = c.Out[:0]
		return err
	}
	c.Meter.Done()
	if len(c.Out) == 0 {
		return nil
	}
	err := c.write(c.unsent())
	c.Out = c.Out[:0]
	return err
}

// Send sends what is in Out and then p, without a copy of p: what many connections are sent need be in memory once only.
func (c *Conn) Send(p []byte) error {
	if err := c.Flush(); err != nil || len(p) == 0 {
		return err
	}
	return c.write(p)
}

// write sends all of p, or fails, as all later ones do then: what they sent would be taken for the rest of p.
func (c *Conn) write(p []byte) error {
	if c.broken != nil {
		return c.broken
	}
	if c.raw != nil {
		c.broken = c.raw.write(p)
	} else {
		c.broken = c.writeAll(p)
	}
	return c.broken
}

// writeAll is write without a socket. The time limit holds for each wait for send space; a large reply has one as a whole besides.
func (c *Conn) writeAll(p []byte) error {
	counted, size, err := c.holdReply(len(p))
	if err != nil {
		return err
	}
	defer c.LetGo(counted)
	began, sent := time.Now(), 0
	for {
		if err := c.net.SetWriteDeadline(c.sendEnd(began, sent, size)); err != nil {
			return err
		}
		n, err := c.net.Write(p)
		p, sent = p[n:], sent+n
		switch {
		case len(p) == 0:
			return nil
		case n > 0 && errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(c.sendEnd(began, sent, size)): // slow, but not dead
		case err != nil:
			return err
		default:
			return io.ErrShortWrite
		}
	}
}

// Close gives the buffers back. It does not close the network connection.
func (c *Conn) Close() {
	c.r, c.w = 0, 0
	c.parkBuffers()
	c.kept = 0
	c.letGo(0)
}
