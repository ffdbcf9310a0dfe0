package jesync

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// What a connection's own commands cause is sent by its goroutine, which waits when the client does not read. What others cause,
// a grant or an expiry, is sent by them if the socket takes it at once. If not, a goroutine sends the rest: nobody waits for
// a client but its own connection. One of the others who sends has set writing; none of them begins to while the goroutine is busy.

// begin tells others that the goroutine will send what they leave.
func (c *conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy, c.alone = true, !c.writing
}

// rest sends all that there is. When it returns, others send what they leave.
func (c *conn) rest() error {
	for {
		if err := c.flush(); err != nil {
			return err
		}
		if c.settle() {
			return nil
		}
	}
}

// settle tells whether nothing was left since the latest flush.
func (c *conn) settle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lines) > 0 {
		return false
	}
	if cap(c.lines) > keepLines {
		c.lines = nil
	}
	if cap(c.own) > keepLines {
		c.own = nil
	}
	c.busy = false
	return true
}

// flushLarge sends when much has gathered.
func (c *conn) flushLarge() error {
	if c.gathered() < flushSize {
		return nil
	}
	return c.flush()
}

// flush sends what there is, after what others have left to others. The time limit holds for each wait for send space.
func (c *conn) flush() error {
	c.step.deliver()
	c.in.Out = append(c.in.Out, c.own...)
	c.own = c.own[:0]
	if !c.alone || c.left.Load() {
		c.join()
	}
	return c.in.Flush()
}

// join waits until nobody else writes, and takes the lines that others have left.
func (c *conn) join() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.writing {
		c.written.Wait()
	}
	c.alone = true
	c.in.Out = append(c.in.Out, c.lines...)
	c.leave(c.lines[:0])
}

// pushLines sends what others have left, without waiting. It does nothing when somebody else will.
func (c *conn) pushLines() {
	c.mu.Lock()
	if c.overflow { // before lines are taken: who takes them must send them, or nobody ever does
		c.mu.Unlock()
		c.socket.Close() // which ends the connection, and with it its requests
		return
	}
	out := c.takeLines()
	c.mu.Unlock()
	for len(out) > 0 {
		n, err := c.tryWrite(out)
		if err != nil {
			c.socket.Close()
		} else if n < len(out) {
			c.server.writers.Go(func() { c.writeRest(out, n) })
			return
		}
		out = c.goOn(out)
	}
}

// takeLines returns what there is to send, nothing when somebody else sends. The caller holds mu.
func (c *conn) takeLines() []byte {
	if c.busy || c.writing || len(c.lines) == 0 {
		return nil
	}
	c.writing = true
	out := c.lines
	c.leave(c.spare[:0])
	c.spare = nil
	return out
}

// goOn ends the writing of out and returns what has gathered meanwhile.
func (c *conn) goOn(out []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cap(out) <= keepLines {
		c.spare = out[:0]
	}
	c.writing = false
	c.written.Signal()
	return c.takeLines()
}

// tryWrite sends as much as the socket takes at once.
func (c *conn) tryWrite(out []byte) (n int, err error) {
	if c.raw == nil {
		return 0, nil
	}
	controlErr := c.raw.Write(func(fd uintptr) bool {
		n, err = syscall.Write(int(fd), out)
		return true
	})
	switch {
	case controlErr != nil:
		return 0, controlErr
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return 0, nil
	}
	return max(0, n), err
}

// writeRest sends out from byte n on, and what gathers meanwhile. It is a goroutine of the server.
func (c *conn) writeRest(out []byte, n int) {
	for len(out) > 0 {
		if err := c.writeSlowly(out[n:]); err != nil {
			c.socket.Close()
		}
		out, n = c.goOn(out), 0
	}
}

// writeSlowly sends p. The time limit holds for each wait for send space.
func (c *conn) writeSlowly(p []byte) error {
	for {
		if err := c.socket.SetWriteDeadline(time.Now().Add(c.server.opts.Timeout)); err != nil {
			return err
		}
		n, err := c.socket.Write(p)
		p = p[n:]
		switch {
		case len(p) == 0:
			return c.socket.SetWriteDeadline(time.Time{})
		case n == 0 || !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
	}
}
