// Package netio is a client connection as the protocols see it: bytes that were read and are not
// yet used, and replies that leave together, after the updates that they acknowledge are durable.
// It also limits the time and the memory that the requests of all connections take.
package netio

import (
	"crypto/tls"
	"errors"
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

	// Patient: the client holds something as long as it is connected (a lock, for example), so
	// neither slow requests nor silence end the connection.
	Patient bool
}

// Conn is one client connection. It belongs to one goroutine; only Stop, Cut and Gone may be called
// by others.
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

	Visitor *access.Visitor   // the client, for access rules; nil: everything is allowed
	Meter   *metrics.Recorder // measures the requests; nil: they are not measured

	net  net.Conn
	raw  *rawSocket // nil when net is not a plain socket
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

// Need waits until n bytes are buffered. Before it reads any of them it refuses a request that
// could never be held (ErrTooLarge), or for which there is no memory now (ErrBusy). The memory is
// taken as the bytes come.
func (c *Conn) Need(n int) error { return c.NeedWith(n, 0) }

// NeedWith is Need for n bytes, behind which up to more bytes of the same request may follow. The
// buffer becomes large enough for both.
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

// WaitByte waits for the next request, until at least one byte is buffered. Only Limits.SetIdle
// limits this wait. WaitByte sends Out before it waits. After Stop it returns ErrStopped instead of
// waiting.
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
	if err := c.Flush(); err != nil { // the client may send the rest only after earlier replies
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

// endRequest ends the time and returns the memory of the request that was served.
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

// read waits until bytes have arrived and reads them.
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

// beginIdle prepares a read between two requests, which only the idle limit ends.
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

// beginLimited prepares a read within a request. If Stop has set a deadline in the past to end an
// idle read, beginLimited replaces that deadline. slow says that the new deadline is the end of the
// whole request's time, not of one wait.
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

// stopping reports whether Stop was called.
func (c *Conn) stopping() bool {
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
	if c.idle {
		return c.net.SetReadDeadline(time.Unix(1, 0))
	}
	return c.net.SetReadDeadline(c.stopBy)
}

// Cut ends the connection, whatever it is doing. Any goroutine may call Cut.
func (c *Conn) Cut() { c.net.Close() }

// Close gives the buffers back. It does not close the network connection.
func (c *Conn) Close() {
	c.r, c.w = 0, 0
	c.parkBuffers()
	c.kept = 0
	c.letGo(0)
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

// Secure reports whether the connection is encrypted by TLS.
func (c *Conn) Secure() bool {
	_, ok := c.net.(interface{ ConnectionState() tls.ConnectionState })
	return ok
}
