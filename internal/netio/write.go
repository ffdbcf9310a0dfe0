package netio

import (
	"errors"
	"io"
	"os"
	"time"
)

// Flush waits until the updates that Out acknowledges are durable, and sends Out. If they cannot be
// made durable, nothing is sent.
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

// Send sends Out and then p. It makes no copy of p, so bytes that go to many connections are in
// memory only once.
func (c *Conn) Send(p []byte) error {
	if err := c.Flush(); err != nil || len(p) == 0 {
		return err
	}
	return c.write(p)
}

// write sends all of p, or fails. After a failure all later calls fail, because the client would
// take their bytes for the rest of p.
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

// writeAll is write for a connection that is no plain socket. Each wait for send space has a time
// limit; a large reply also has one as a whole.
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
		// slow, but not dead.
		case n > 0 && errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(c.sendEnd(began, sent, size)):
		case err != nil:
			return err
		default:
			return io.ErrShortWrite
		}
	}
}

// unsent returns the part of Out that hint has not sent already.
func (c *Conn) unsent() []byte {
	n := min(c.serving.sent, len(c.Out))
	c.serving.sent -= n
	return c.Out[n:]
}

// sendEnd returns when the client must have taken the next bytes of a reply. The client has taken
// sent bytes since began; the reply holds held bytes of memory.
func (c *Conn) sendEnd(began time.Time, sent, held int) time.Time {
	at := time.Now().Add(c.timeout())
	if c.opts.Limits == nil || c.opts.Patient || held == 0 {
		return at
	}
	if whole := time.Duration(c.opts.Limits.request.Load()); whole > 0 {
		if end := began.Add(whole + moveTime(int64(sent), int64(held))); end.Before(at) {
			return end
		}
	}
	return at
}
