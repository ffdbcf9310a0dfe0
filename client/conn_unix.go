//go:build unix

package client

import (
	"errors"
	"net"
	"syscall"
)

// alive reports whether the server has left an idle connection open, without waiting: there must be
// nothing to read, not even the end of the stream.
func alive(c net.Conn) bool {
	if secure, ok := c.(*secureConn); ok {
		return secure.alive()
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, err := syscall.Read(int(fd), b[:])
		open = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && open
}

// belowTLS is the connection below TLS, which can be read without waiting.
type belowTLS struct {
	net.Conn
	dry bool // reads do not wait
}

// errDry is the error of a read that would have to wait. TLS can go on after it, because it is
// temporary.
var errDry net.Error = dryError{}

type dryError struct{}

// Error implements error.
func (dryError) Error() string { return "nothing has arrived" }

// Timeout implements net.Error.
func (dryError) Timeout() bool { return true }

// Temporary implements net.Error.
func (dryError) Temporary() bool { return true }

// Read implements net.Conn.
func (b *belowTLS) Read(p []byte) (n int, err error) {
	if !b.dry {
		return b.Conn.Read(p)
	}
	socket, ok := b.Conn.(syscall.Conn)
	if !ok {
		return 0, errDry
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	if waitErr := raw.Read(func(fd uintptr) bool { n, err = syscall.Read(int(fd), p); return true }); waitErr != nil {
		return 0, waitErr
	}
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return 0, errDry
	case err != nil || n <= 0:
		return 0, net.ErrClosed
	}
	return n, nil
}

// alive is alive for a connection over TLS. Messages of TLS itself after the handshake do not count
// as bytes to read.
func (c *secureConn) alive() bool {
	c.below.dry = true
	_, err := c.Read(make([]byte, 1))
	c.below.dry = false
	return errors.Is(err, errDry)
}
