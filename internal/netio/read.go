package netio

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"gotycoon/internal/rawio"
)

const (
	// rawChunk bounds one write and one read, so that copying it does not delay the scheduler.
	rawChunk = 256 << 10

	// readBurst is how many bytes a connection reads before it lets others run (turn.go). Without
	// the limit, when hundreds of clients send at the same time, each connection runs as long as it
	// has bytes to read, and a client with a small request waits for all the bytes of all others. A
	// burst is one buffer of small requests: about 300 of them, half a millisecond.
	readBurst = readSize
)

// Buffered returns the bytes read but not yet used. They are valid until the next Fill or WaitByte.
func (c *Conn) Buffered() []byte {
	if c.bufs == nil {
		return nil
	}
	return c.bufs.in[c.r:c.w]
}

// Advance marks the first n buffered bytes as used.
func (c *Conn) Advance(n int) { c.r += n }

// WaitByte waits for the next request, until at least one byte is buffered. Only Limits.SetIdle
// limits this wait. WaitByte sends Out before it waits. After Stop it returns ErrStopped instead of
// waiting, and where the connection rests in a loop, ErrRests, or ErrCalled after Call.
func (c *Conn) WaitByte() error {
	err := c.waitByte()
	if !errors.Is(err, ErrRests) && c.settler != nil {
		c.Leave() // whatever its goroutine does next, it sends no replies of others
	}
	return err
}

func (c *Conn) waitByte() error {
	c.endRequest()
	c.replies.end(len(c.Out), c.Owed.Confirms())
	if c.r < c.w && len(c.Out) < flushSize {
		c.beginRequest()
		return nil
	}
	if c.term != 0 && c.defers() {
		return ErrRests
	}
	err := c.Flush()
	c.Owed.Forget() // what is left owes an answer to nobody: its client wanted none
	c.replies.forget()
	c.beginRequest()
	c.replies.counted = c.Owed.Confirms()
	c.precious = false
	if err != nil || c.r < c.w {
		return err
	}
	c.r, c.w = 0, 0
	if err := c.beginIdle(); err != nil {
		return err
	}
	c.Meter.Idle()
	if c.bare != nil {
		return c.readOrRest()
	}
	return c.measured(c.read())
}

// endRequest ends the time and returns the memory of the request that was served.
func (c *Conn) endRequest() {
	if !c.began.IsZero() {
		c.Restart()
	}
	if !c.serving.began.IsZero() {
		c.endServing()
	}
	c.want, c.overdrawn = 0, false
	if c.held > 0 {
		c.shrink()
		c.letGo(c.inputCost() + c.kept)
	}
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
	if c.bare != nil {
		return c.limitRest(end)
	}
	if !c.limited && end.IsZero() {
		return nil
	}
	c.limited = !end.IsZero()
	return c.net.SetReadDeadline(end)
}

// idleEnd returns when the next request must have begun; the zero time means that there is no
// limit.
func (c *Conn) idleEnd() time.Time {
	if c.opts.Limits == nil || c.opts.Patient {
		return time.Time{}
	}
	idle := time.Duration(c.opts.Limits.idle.Load())
	if idle <= 0 {
		return time.Time{}
	}
	return time.Now().Add(idle)
}

// Largest returns how many bytes a request may have if its protocol allows as many as allowed.
func (c *Conn) Largest(allowed int) int {
	if l := c.opts.Limits; l != nil {
		if most := l.largest.Load(); most > 0 && most < int64(allowed) {
			return int(most)
		}
	}
	return allowed
}

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

// Fill reads at least one more byte of the current request, within the time limit.
func (c *Conn) Fill() error {
	if err := c.Flush(); err != nil { // the client may send the rest only after earlier replies
		return err
	}
	c.overdrawn, c.precious = false, false
	if err := c.makeRoom(); err != nil {
		return err
	}
	if c.bare != nil {
		if n, err := c.readBare(); n > 0 || err != nil {
			return err
		}
		if err := c.Settle(); err != nil {
			return err
		}
	}
	slow, err := c.beginLimited()
	if err != nil {
		return err
	}
	c.Meter.Leave()
	w := c.w
	err = c.measured(c.read())
	c.came += int64(c.w - w)
	if slow && errors.Is(err, os.ErrDeadlineExceeded) && !c.Stopping() {
		return ErrSlow
	}
	return err
}

// More reads what has arrived of the rest of a request, without waiting and without sending Out. It
// reports whether anything has. Only a connection in a loop can do that, and it does not do it when
// it has read so much that others come first.
func (c *Conn) More() (bool, error) {
	if c.bare == nil || c.burst >= readBurst {
		return false, nil
	}
	if err := c.makeRoom(); err != nil {
		return false, err
	}
	n, err := c.readBare()
	return n > 0, err
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

// measured tells the meter when bytes have arrived.
func (c *Conn) measured(err error) error {
	if err == nil {
		c.Meter.Arrived()
	}
	return err
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

// read waits until bytes have arrived and reads them into the connection's buffer.
func (s *rawSocket) read() error {
	s.err = nil
	if s.burst >= readBurst {
		s.burst = 0
		s.c.takeTurn()
	}
	if err := s.rc.Read(s.onReadable); err != nil {
		return err
	}
	return s.err
}

// takeTurn lets others run before a connection that has not waited for a while reads on.
func (c *Conn) takeTurn() {
	if l := c.opts.Limits; l != nil {
		l.turns.take()
		return
	}
	runtime.Gosched()
}

// readSome reads what has arrived. If nothing has arrived, it returns false, and the runtime calls
// it again when there are bytes.
func (s *rawSocket) readSome(fd uintptr) bool {
	c := s.c
	c.takeBuffers()
	room := c.bufs.in[c.w:]
	n, errno := rawio.Read(fd, room[:min(len(room), rawChunk)])
	switch {
	case errno == syscall.EAGAIN:
		s.burst = 0
		if c.w == 0 {
			c.parkBuffers()
		}
		return false
	case errno != 0:
		s.err = os.NewSyscallError("read", errno)
	case n == 0:
		s.err = io.EOF
	}
	c.w += n
	s.burst += n
	return true
}

// takeBuffers takes buffers from the pool, unless the connection has some.
func (c *Conn) takeBuffers() {
	if c.bufs != nil {
		return
	}
	c.bufs = c.pool.Get().(*buffers)
	c.Out = c.bufs.out
	if len(c.bufs.in) > readSize {
		c.force(c.inputCost()) // the buffer exists already: to refuse it would save nothing
	}
}

// parkBuffers returns the buffers to the pool. Nothing may be buffered or unsent.
func (c *Conn) parkBuffers() {
	b := c.bufs
	if b == nil {
		return
	}
	if c.held > 0 {
		c.letGo(c.held - c.inputCost())
	}
	if len(b.in) > keepSize {
		b.in, b.whole = make([]byte, readSize), nil
	}
	b.out = c.Out[:0]
	if cap(b.out) > keepSize {
		b.out = nil
	}
	c.bufs, c.Out = nil, nil
	c.pool.Put(b)
}
