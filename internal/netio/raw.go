package netio

import (
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

	// readBurst is how many bytes a connection reads before it lets others run. Without the limit,
	// when hundreds of clients send at the same time, each connection runs as long as it has bytes
	// to read, and a client with a small request waits for all the bytes of all others.
	readBurst = 64 << 10
)

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
	if !ok {
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

// read waits until bytes have arrived and reads them into the connection's buffer.
func (s *rawSocket) read() error {
	s.err = nil
	if s.burst >= readBurst {
		s.burst = 0
		runtime.Gosched()
	}
	if err := s.rc.Read(s.onReadable); err != nil {
		return err
	}
	return s.err
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
