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
