package netio

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"gotycoon/db/owed"
	"gotycoon/internal/rawio"
)

// ErrRests is returned by WaitByte when the connection rests in a loop. The caller does not touch
// the connection any more: another goroutine may serve it already. See RestIn.
var ErrRests = errors.New("the connection rests")

// resting is what a connection is to its loop.
type resting struct {
	bare   *Bare  // nil: the connection is none of the loop, or not any more
	place  uint32 // among the connections of all loops
	loop   *loop
	resume func() // serves the connection until it rests or ends

	state atomic.Uint32 // see state.go
	over  atomic.Bool   // the client may have ended the stream
	until atomic.Int64  // when the limit of rest ends, in nanoseconds since 1970; 0: never

	// These belong to the owner.
	watched  bool     // by the loop's poller
	drained  bool     // the latest read has found fewer bytes than it could take
	settling bool     // it is served for its replies alone
	settler  *settler // that serves it; nil: somebody else does
	called   bool     // Call has been called before the latest attempt to park
	lingers  int      // bytes that it may still send, see Linger
	term     uint64   // in which the loop's leader serves it; 0: somebody else does
	burst    int      // bytes read since others were served
}

// RestIn lets the connection rest in the loop of Options.Loops, if there is one and the connection
// can. WaitByte then returns ErrRests where it would wait, and resume is called, by any goroutine,
// when the connection is to be served: with WaitByte, as if it had waited. See Call for the rest of
// what WaitByte may return then.
func (c *Conn) RestIn(resume func()) {
	if bare, ok := c.net.(*Bare); ok && c.opts.Loops != nil {
		c.resume, c.place = resume, c.opts.Loops.next.Add(1)
		c.loop = c.opts.Loops.of(c.place)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bare = bare
	}
}

// Leave says that the caller is about to wait for something else than bytes or send space of the
// connection: nobody waits for it meanwhile. It costs a goroutine, so nobody calls it for a wait of
// less than a tenth of a millisecond.
func (c *Conn) Leave() {
	if c.term != 0 {
		c.loop.leave(c.term)
		c.term = 0
	}
	if c.settler != nil {
		c.settler.leave()
		c.settler = nil
	}
}

// Settle makes a connection that rests in a loop one that waits in a goroutine, for good, and
// returns its network connection.
func (c *Conn) Settle() error {
	if c.bare == nil {
		return nil
	}
	c.Leave()
	c.mu.Lock()
	defer c.mu.Unlock()
	tcp, err := c.bare.TCP()
	if err != nil {
		return err
	}
	c.bare, c.net = nil, tcp
	c.raw = newRawSocket(c)
	return nil
}

// Linger ends the direction to the client, and lets the client send on for a time, or so many
// bytes, which are thrown away: to close a socket with unread bytes would destroy the last reply.
// If rests is true, the connection rests meanwhile, and Linger is to be called again when it is
// resumed. Else it is to be closed. ok is false, and nothing is done, if the connection is none of
// a loop.
func (c *Conn) Linger(limit time.Duration, most int) (rests, ok bool) {
	if c.bare == nil {
		return false, false
	}
	if c.lingers == 0 {
		if c.bare.CloseWrite() != nil {
			return false, true
		}
		c.lingers = most
		c.until.Store(time.Now().Add(limit).UnixNano())
	}
	for c.lingers > 0 && !c.Stopping() && time.Now().UnixNano() < c.until.Load() {
		c.takeBuffers()
		n, errno := rawio.Read(uintptr(c.bare.fd), c.bufs.in)
		c.parkBuffers()
		switch {
		case errno == syscall.EAGAIN:
			if c.watch() != nil {
				return false, true
			}
			if c.park() {
				return true, true
			}
		case errno != 0 || n == 0:
			return false, true
		}
		c.lingers -= n
	}
	return false, true
}

// defers reports whether somebody else sends the replies in Out, later: they wait for the log, for
// its disk or for other servers, and the requests of other connections shall not.
func (c *Conn) defers() bool {
	if c.term == 0 || c.settling || c.r < c.w {
		return false
	}
	switch c.Owed.Waiting() {
	case owed.Log:
		return c.loop.queue(c, &c.loop.owing)
	case owed.Disk:
		if log := c.Owed.OneLog(); log != nil && c.loop.shares(log) {
			return c.loop.queue(c, &c.loop.unsynced)
		}
		return c.loop.queue(c, &c.loop.slow)
	case owed.Servers:
		return c.loop.queue(c, &c.loop.slow)
	}
	return false
}

// readOrRest reads what has come, or has the connection rest. Nothing is buffered or unsent.
func (c *Conn) readOrRest() error {
	settling := c.settling
	c.settling = false
	for {
		if !settling && c.yields() {
			return ErrRests
		}
		if c.drained || settling {
			c.parkBuffers()
		} else if n, err := c.readBare(); n > 0 || err != nil {
			return c.measured(err)
		}
		if err := c.watch(); err != nil {
			return err
		}
		if c.drained || !settling {
			if c.park() {
				return ErrRests
			}
			if c.called {
				c.called = false
				return ErrCalled
			}
		}
		if settling {
			c.drained = false
			if !c.loop.queue(c, &c.loop.later) {
				c.term, c.settler = 0, nil
				go c.resume()
			}
			return ErrRests
		}
		if err := c.beginIdle(); err != nil {
			return err
		}
	}
}

// limitRest notes when a rest that begins, or goes on, has to end.
func (c *Conn) limitRest(end time.Time) error {
	switch until := c.until.Load(); {
	case until != 0 && time.Now().UnixNano() >= until:
		return os.ErrDeadlineExceeded
	case until == 0 && !end.IsZero():
		c.until.Store(end.UnixNano())
	}
	return nil
}

// watch has the connection's loop watch it. A connection that moves to another loop has no leader
// any more: in the new loop the number of its term is somebody else's.
func (c *Conn) watch() error {
	loop, fd := c.loop.all.of(c.place), c.bare.fd
	if c.watched && loop == c.loop {
		return nil
	}
	if c.watched {
		c.loop.remove(fd)
		c.term = 0 // of the loop that the connection leaves
	}
	if err := loop.add(c); err != nil {
		return err
	}
	c.bare.mu.Lock()
	defer c.bare.mu.Unlock()
	c.bare.unwatch = func() { loop.remove(fd) }
	c.watched, c.loop = true, loop
	return nil
}

// readBare reads what has come into the read buffer. It returns 0 if nothing has.
func (c *Conn) readBare() (n int, err error) {
	c.takeBuffers()
	room := c.bufs.in[c.w:]
	room = room[:min(len(room), rawChunk)]
	n, errno := rawio.Read(uintptr(c.bare.fd), room)
	switch {
	case errno == syscall.EAGAIN:
		c.burst, c.drained = 0, !c.over.Load()
		if c.w == 0 {
			c.parkBuffers()
		}
		return 0, nil
	case errno != 0:
		return 0, os.NewSyscallError("read", errno)
	case n == 0:
		return 0, io.EOF
	}
	if c.until.Load() != 0 {
		c.until.Store(0)
	}
	c.w += n
	c.burst += n
	c.drained = n < len(room) && !c.over.Load()
	return n, nil
}

// yields reports whether the connection has read so much that others come first. It is served again
// in the loop's next round.
func (c *Conn) yields() bool {
	if c.burst < readBurst {
		return false
	}
	c.burst = 0
	c.parkBuffers()
	if c.loop.queue(c, &c.loop.later) {
		return true
	}
	c.takeTurn()
	return false
}

// writeBare sends as much of p as there is send space for and returns the rest.
func (c *Conn) writeBare(p []byte) (rest []byte, err error) {
	for len(p) > 0 {
		n, errno := rawio.Write(uintptr(c.bare.fd), p[:min(len(p), rawChunk)])
		if errno == syscall.EAGAIN {
			break
		}
		if errno != 0 {
			return p, os.NewSyscallError("write", errno)
		}
		p = p[n:]
	}
	return p, nil
}
