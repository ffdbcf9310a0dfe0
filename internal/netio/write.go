package netio

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"gotycoon/db/owed"
	"gotycoon/internal/rawio"
)

// flushSize is how many bytes of replies may gather while pipelined requests are served.
const flushSize = 64 << 10

// Flush waits until the updates that Out acknowledges are durable, and sends Out. If they cannot be
// made durable, nothing is sent. If other servers do not confirm them, errors are sent instead of
// the replies that acknowledge them, see Answered.
func (c *Conn) Flush() error {
	if c.term != 0 {
		if w := c.Owed.Waiting(); w > owed.Disk || w == owed.Disk && !c.leadsSync() {
			c.Leave()
		}
	}
	if err := c.waitLogs(); err != nil {
		c.Owed.Forget()
		c.drop()
		return err
	}
	if c.settler != nil && c.Owed.Waiting() == owed.Servers {
		c.Leave()
	}
	if len(c.Out) == 0 {
		c.Meter.Done()
		return nil
	}
	unconfirmed := c.Owed.WaitConfirmed()
	if unconfirmed != nil {
		unconfirmed = c.answerInstead(unconfirmed)
	}
	c.Meter.Done()
	err := c.write(c.unsent())
	c.drop()
	if err == nil && unconfirmed != nil {
		c.broken, err = unconfirmed, unconfirmed
	}
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

// unsent returns the part of Out that hint has not sent already.
func (c *Conn) unsent() []byte {
	n := min(c.serving.sent, len(c.Out))
	c.serving.sent -= n
	return c.Out[n:]
}

// write sends all of p, or fails. After a failure all later calls fail, because the client would
// take their bytes for the rest of p.
func (c *Conn) write(p []byte) error {
	if c.broken != nil {
		return c.broken
	}
	if c.broken = c.answers(); c.broken != nil {
		return c.broken
	}
	if c.bare != nil {
		if p, c.broken = c.writeBare(p); c.broken != nil || len(p) == 0 {
			return c.broken
		}
		if c.broken = c.Settle(); c.broken != nil { // there is no send space
			return c.broken
		}
	}
	if c.raw != nil {
		c.broken = c.raw.write(p)
	} else {
		c.broken = c.writeAll(p)
	}
	return c.broken
}

// write sends all of p. Each wait for send space has a time limit; a large reply also has one as a
// whole.
func (s *rawSocket) write(p []byte) error {
	s.err, s.rest, s.began, s.size = nil, p, time.Time{}, 0
	err := s.rc.Write(s.onWritable)
	s.rest = nil
	if s.counted > 0 {
		s.c.letGo(s.c.held - int64(s.counted))
		s.counted = 0
	}
	if err != nil {
		return err
	}
	if s.armed && s.err == nil {
		s.armed = false
		return s.c.net.SetWriteDeadline(time.Time{})
	}
	return s.err
}

// writeSome writes as much as there is send space for. If bytes are left, it returns false, and the
// runtime calls it again when there is space.
func (s *rawSocket) writeSome(fd uintptr) bool {
	for len(s.rest) > 0 {
		n, errno := rawio.Write(fd, s.rest[:min(len(s.rest), rawChunk)])
		if errno == syscall.EAGAIN {
			if s.began.IsZero() {
				s.began, s.sent = time.Now(), 0
				if s.counted, s.size, s.err = s.c.holdReply(len(s.rest)); s.err != nil {
					s.counted = 0
					return true
				}
			}
			s.armed = true
			s.err = s.c.net.SetWriteDeadline(s.c.sendEnd(s.began, s.sent, s.size))
			return s.err != nil
		}
		if errno != 0 {
			s.err = os.NewSyscallError("write", errno)
			return true
		}
		s.rest = s.rest[n:]
		s.sent += n
	}
	return true
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

// Drips reports whether a client takes a reply in drops that is sent in parts, each with Flush, and
// holds held bytes of memory all the time: it has taken sent bytes since began. A limit for each
// part alone would let such a reply take hours.
func (c *Conn) Drips(began time.Time, sent, held int) bool {
	if c.opts.Limits == nil {
		return false
	}
	whole := time.Duration(c.opts.Limits.request.Load())
	return whole > 0 && time.Since(began) > whole+moveTime(int64(sent), int64(held))
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
