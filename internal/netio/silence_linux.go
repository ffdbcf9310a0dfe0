package netio

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// LimitSilence has the system give up a connection whose other end acknowledges nothing for a time,
// or takes no byte.
func LimitSilence(socket syscall.Conn, limit time.Duration) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // without the option the end is noticed later
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
	})
}
