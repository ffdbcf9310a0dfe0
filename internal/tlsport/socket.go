package tlsport

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"gotycoon/internal/rawio"
)

// rawChunk bounds one write. Go's scheduler is not told of raw system calls, so a long one would
// keep other goroutines from this processor.
const rawChunk = 256 << 10

// socket is the connection below TLS. It differs from a TCP connection in two ways. A write
// deadline limits each wait for send space, because crypto/tls cannot go on after a write that has
// timed out. And two kinds of calls can be told not to wait: reads (dry), and the write of TLS's
// closing alert (closing), so that Close does not wait for a client that does not read.
type socket struct {
	*net.TCPConn
	rc      syscall.RawConn
	limit   atomic.Int64 // of each wait for send space, in nanoseconds; 0: none; negative: over
	closing atomic.Bool  // writes do not wait any more

	// Used by the goroutine that reads.
	dry        bool // reads do not wait: they return errDry
	onReadable func(fd uintptr) bool
	into       []byte
	n          int
	err        error

	// Used by the goroutine that writes; TLS lets in one at a time.
	onWritable func(fd uintptr) bool
	rest       []byte
	writeErr   error
	armed      bool // the TCP connection has a write deadline, to be removed after the write
}

// errDry is the error of a read that would have to wait. TLS can go on after it, because it is
// temporary.
var errDry net.Error = dryError{}

type dryError struct{}

// Error implements error.
func (dryError) Error() string { return "nothing more has arrived" }

// Timeout implements net.Error.
func (dryError) Timeout() bool { return true }

// Temporary implements net.Error.
func (dryError) Temporary() bool { return true }

func newSocket(c *net.TCPConn) (*socket, error) {
	rc, err := c.SyscallConn()
	s := &socket{TCPConn: c, rc: rc}
	s.onReadable, s.onWritable = s.readSome, s.writeSome
	return s, err
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s.into, s.n, s.err = p, 0, nil
	err := s.rc.Read(s.onReadable)
	s.into = nil
	if err != nil {
		return 0, err
	}
	return s.n, s.err
}

// readSome reports false if the runtime has to call it again when bytes have arrived.
func (s *socket) readSome(fd uintptr) bool {
	n, errno := rawio.Read(fd, s.into)
	switch {
	case errno == syscall.EAGAIN && s.dry:
		s.err = errDry
	case errno == syscall.EAGAIN:
		return false
	case errno != 0:
		s.err = os.NewSyscallError("read", errno)
	case n == 0:
		s.err = io.EOF
	default:
		s.n = n
	}
	return true
}

// peek waits for bytes and copies them, without taking them from the socket.
func (s *socket) peek(p []byte) (n int, err error) {
	waitErr := s.rc.Read(func(fd uintptr) bool {
		n, _, err = syscall.Recvfrom(int(fd), p, syscall.MSG_PEEK)
		return !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
	})
	switch {
	case waitErr != nil:
		return 0, waitErr
	case err != nil:
		return 0, os.NewSyscallError("recvfrom", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// SetWriteDeadline implements net.Conn. The time until t limits each wait for send space.
func (s *socket) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		s.limit.Store(0)
		return nil
	}
	left := time.Until(t)
	if left > 0 {
		s.limit.Store(int64(left))
		return nil
	}
	s.limit.Store(-1)
	return s.TCPConn.SetWriteDeadline(t) // ends a wait in progress
}

// SetDeadline implements net.Conn.
func (s *socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// Write implements net.Conn.
func (s *socket) Write(p []byte) (int, error) {
	s.rest, s.writeErr = p, nil
	err := s.rc.Write(s.onWritable)
	n := len(p) - len(s.rest)
	s.rest = nil
	if err == nil {
		err = s.writeErr
	}
	if s.armed && err == nil {
		s.armed = false
		err = s.TCPConn.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// writeSome reports false if the runtime has to call it again when there is send space.
func (s *socket) writeSome(fd uintptr) bool {
	for len(s.rest) > 0 {
		n, errno := rawio.Write(fd, s.rest[:min(len(s.rest), rawChunk)])
		switch {
		case errno == syscall.EAGAIN:
			s.writeErr = s.beforeWait()
			return s.writeErr != nil
		case errno != 0:
			s.writeErr = os.NewSyscallError("write", errno)
			return true
		}
		s.rest = s.rest[n:]
	}
	return true
}

// beforeWait sets the deadline of a wait for send space. It returns an error if the write must not
// wait.
func (s *socket) beforeWait() error {
	limit := time.Duration(s.limit.Load())
	switch {
	case limit < 0 || s.closing.Load():
		return os.ErrDeadlineExceeded
	case limit > 0:
		s.armed = true
		return s.TCPConn.SetWriteDeadline(time.Now().Add(limit))
	}
	return nil
}
