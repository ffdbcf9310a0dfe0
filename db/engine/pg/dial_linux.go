package pg

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unheard is for how long the other side may leave unacknowledged what was sent.
const unheard = 5 * time.Second

// control has the system give up a TCP connection on which nothing arrives any more.
func control(network, _ string, c syscall.RawConn) error {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil
	}
	var failed error
	if err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unheard.Milliseconds()))
	}); err != nil {
		return err
	}
	return failed
}

// unsent returns how many bytes are still on their way to the other side.
func unsent(c net.Conn) (bytes int) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { bytes, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return bytes
}
