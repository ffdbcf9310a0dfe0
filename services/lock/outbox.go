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
// Others write without waiting. If the socket does not take all bytes at once, a new goroutine
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
// # Connections in loops
//
// Nobody can wait for send space of a connection that rests in a loop (netio.Bare): first the own
// goroutine has to make it one of package net, with a goroutine for good. So others put back what
// such a socket has not taken, in front of the lines that were left meanwhile, and call the
// connection. Then its own goroutine takes it over, and sends the lines as the others do:
//
//	other: takes A B C, the socket takes A, puts back B C │ calls
//	own:                                                    takeOver: busy, Settle, not busy
//	                                                        pushLines: writeRest sends B C
//
// The own goroutine leaves the loop only while busy is set and writing is not. So others, who have
// set writing, may rely on what they have found. No line stays unsent: others call after they have
// put lines back, unless busy is set, and whoever clears busy looks for lines.
//
// The own goroutine keeps "writing is false" in the field alone, so that it need not take the mutex
// for each reply. The field stays right while busy is set: no other begins to write then, so once
// writing is false it stays false.

// begin sets busy: from now on others leave their lines to the connection's goroutine. In a loop it
// waits for who writes, which is never long: what the socket does not take is put back, and has to
// be sent before the replies to come.
func (c *conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = true
	if c.writing && c.in.InLoop() {
		c.awaitWriter()
	}
	c.alone = !c.writing
}

// rest sends all lines and clears busy: from then on others send the lines that they leave. Where a
// part of a line has come, the wait for the rest of the line keeps a goroutine.
func (c *conn) rest() error {
	for {
		if err := c.flush(); err != nil {
			return err
		}
		if len(c.in.Buffered()) > 0 {
			if err := c.in.Settle(); err != nil {
				return err
			}
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
	c.awaitWriter()
	c.alone = true
	c.in.Out = append(c.in.Out, c.lines...)
	c.leave(c.lines[:0])
}

// takeOver follows a call: others have left lines that the socket of a connection in a loop has not
// taken. Those that are still left are sent as others send lines: the client's next commands do not
// wait until the client has taken them.
func (c *conn) takeOver() error {
	if !c.left.Load() {
		return nil
	}
	c.mu.Lock()
	c.busy = true
	c.awaitWriter()
	c.mu.Unlock()
	if err := c.in.Settle(); err != nil {
		return err
	}
	c.mu.Lock()
	c.busy = false
	c.mu.Unlock()
	c.pushLines()
	return nil
}

// awaitWriter waits until no other goroutine writes. The caller has set busy, and holds mu.
func (c *conn) awaitWriter() {
	for c.writing {
		c.written.Wait()
	}
}

// pushLines sends what others have left, without waiting. It does nothing if another goroutine
// writes, or the connection's own goroutine will send the lines.
func (c *conn) pushLines() {
	c.mu.Lock()
	// This test comes before takeLines: takeLines sets writing, and only whoever sends the lines
	// clears it again.
	if c.overflow {
		c.mu.Unlock()
		c.in.Cut() // which ends the connection and its requests
		return
	}
	out := c.takeLines()
	c.mu.Unlock()
	for len(out) > 0 {
		n, err := c.tryWrite(out)
		switch {
		case err != nil:
			c.in.Cut()
		case n == len(out):
		case c.in.InLoop():
			if c.putBack(out, n) {
				c.in.Call()
			}
			return
		default:
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

// putBack clears writing after the first n bytes of out have been written, and leaves the rest
// again. It reports whether nobody is about to send them.
func (c *conn) putBack(out []byte, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	later := c.lines
	if n > 0 {
		out = append(out[:0], out[n:]...)
	}
	c.leave(append(out, later...))
	if cap(later) <= keepLines {
		c.spare = later[:0]
	}
	c.writing = false
	c.written.Signal()
	return !c.busy
}

// tryWrite sends as much as the socket takes at once.
func (c *conn) tryWrite(out []byte) (n int, err error) {
	if c.raw == nil {
		return 0, nil
	}
	c.attempt.out = out
	err = c.raw.Control(c.attempt.onSocket)
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
			c.in.Cut()
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
