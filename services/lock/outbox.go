package lock

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// Two parties write to the socket of a connection: the connection's own goroutine, which sends the
// replies to its commands, and "others", that is goroutines of other connections and the clock,
// which send a grant or an expiry. Only the connection's own goroutine may wait for its client.
// Others write without waiting; if the socket does not take all bytes at once, a new goroutine
// (writeRest) sends the rest.
//
// Two flags under session.mu keep them apart. busy means that the own goroutine is answering
// commands and will send all lines before it waits for the next command. writing means that one of
// the others is writing.
//
//	              writing false                        writing true
//	busy false    others set writing and write         others leave lines to the writer
//	busy true     others leave lines to the goroutine  the writer ends after its present buffer;
//	                                                   the goroutine waits for that, then writes
//
// The own goroutine keeps "writing is false" in the field alone, so that it need not take the mutex
// for each reply. The field stays right while busy is set: no other begins to write then, so once
// writing is false it stays false.

// begin sets busy: from now on others leave their lines to the connection's goroutine.
func (c *conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy, c.alone = true, !c.writing
}

// rest sends all lines and clears busy: from then on others send the lines that they leave.
func (c *conn) rest() error {
	for {
		if err := c.flush(); err != nil {
			return err
		}
		if c.letOthersWrite() {
			return nil
		}
	}
}

// letOthersWrite clears busy. It returns false, and busy stays set, if lines were left since the
// latest flush: this goroutine must send them, because nobody else will.
func (c *conn) letOthersWrite() bool {
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

// flushLarge sends the replies if they have reached flushSize.
func (c *conn) flushLarge() error {
	if c.gathered() < flushSize {
		return nil
	}
	return c.flush()
}

// flush sends all lines of this connection, after it has asked other sessions to send what this
// connection's steps left with them. The time limit holds for each wait for send space.
func (c *conn) flush() error {
	c.step.deliver()
	c.in.Out = append(c.in.Out, c.own...)
	c.own = c.own[:0]
	if !c.alone || c.left.Load() {
		c.join()
	}
	return c.in.Flush()
}

// join waits until no other goroutine writes, and takes the lines that others have left.
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

// pushLines sends what others have left, without waiting. It does nothing if another goroutine
// writes, or the connection's own goroutine will send the lines.
func (c *conn) pushLines() {
	c.mu.Lock()
	// This test comes before takeLines: takeLines sets writing, and only whoever sends the lines
	// clears it again.
	if c.overflow {
		c.mu.Unlock()
		c.socket.Close() // which ends the connection and its requests
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

// takeLines returns the lines to send and sets writing. It returns nil if there are none or
// somebody else will send them. The caller holds mu.
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

// goOn clears writing after out has been written, and takes the lines that were left meanwhile.
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
	c.attempt.out = out
	err = c.raw.Write(c.attempt.onWritable)
	c.attempt.out = nil
	switch {
	case err != nil:
		return 0, err
	case c.attempt.errno == syscall.EAGAIN:
		return 0, nil
	case c.attempt.errno != 0:
		return 0, os.NewSyscallError("write", c.attempt.errno)
	}
	return c.attempt.n, nil
}

// writeRest sends out from byte n on, and then lines that are left meanwhile. It runs in a
// goroutine of the server.
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
		if err := c.socket.SetWriteDeadline(time.Now().Add(c.server.Timeout)); err != nil {
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
