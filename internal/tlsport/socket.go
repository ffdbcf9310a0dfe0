package tlsport

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// socket is what is below TLS. It differs from a TCP connection in two ways: a write deadline is a limit of the time without progress,
// because TLS has no way to go on after one that has passed; and reads can be asked not to wait, and the last write.
type socket struct {
	*net.TCPConn
	rc    syscall.RawConn
	limit atomic.Int64 // of the writes, in nanoseconds; 0: none, or a deadline in the past
	moved atomic.Bool  // something was sent since the deadline was set

	closing atomic.Bool // writes do not wait, either

	// Of the goroutine that reads.
	dry        bool // reads do not wait: errDry
	onReadable func(fd uintptr) bool
	into       []byte
	n          int
	err        error
}

// errDry is returned by a read that would have to wait. TLS goes on after an error that is temporary.
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
	s.onReadable = s.readSome
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

// readSome reports false when it has to be called again after bytes have arrived.
func (s *socket) readSome(fd uintptr) bool {
	n, err := syscall.Read(int(fd), s.into)
	for err == syscall.EINTR {
		n, err = syscall.Read(int(fd), s.into)
	}
	switch {
	case err == syscall.EAGAIN && s.dry:
		s.err = errDry
	case err == syscall.EAGAIN:
		return false
	case err != nil:
		s.err = os.NewSyscallError("read", err)
	case n == 0:
		s.err = io.EOF
	default:
		s.n = n
	}
	return true
}

// peek waits for bytes and copies them without taking them.
func (s *socket) peek(p []byte) (n int, err error) {
	waitErr := s.rc.Read(func(fd uintptr) bool {
		n, _, err = syscall.Recvfrom(int(fd), p, syscall.MSG_PEEK)
		return err != syscall.EAGAIN && err != syscall.EINTR
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

// SetWriteDeadline implements net.Conn. A write that has sent something since gets as much time again.
func (s *socket) SetWriteDeadline(t time.Time) error {
	left := time.Duration(0)
	if !t.IsZero() {
		left = max(0, time.Until(t))
	}
	s.moved.Store(false)
	s.limit.Store(int64(left))
	return s.TCPConn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (s *socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// Write implements net.Conn.
func (s *socket) Write(p []byte) (n int, err error) {
	if s.closing.Load() {
		return s.writeOnce(p)
	}
	for {
		m, err := s.TCPConn.Write(p[n:])
		n += m
		if m > 0 {
			s.moved.Store(true)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || !s.extend() {
			return n, err
		}
	}
}

// extend moves the write deadline on if there has been progress.
func (s *socket) extend() bool {
	limit := time.Duration(s.limit.Load())
	return limit > 0 && s.moved.Swap(false) && s.TCPConn.SetWriteDeadline(time.Now().Add(limit)) == nil
}

// writeOnce sends what the socket takes at once.
func (s *socket) writeOnce(p []byte) (n int, err error) {
	waitErr := s.rc.Write(func(fd uintptr) bool {
		n, err = syscall.Write(int(fd), p)
		return true
	})
	if waitErr != nil {
		return 0, waitErr
	}
	return max(0, n), err
}
