package forward

import (
	"net"

	"golang.org/x/sys/unix"
)

// traffic returns how many bytes a socket has received, and how many of those that it has sent were
// acknowledged.
func traffic(socket *net.TCPConn) (received, acked uint64, ok bool) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	_ = raw.Control(func(fd uintptr) { // fails for a closed socket
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			received, acked, ok = info.Bytes_received, info.Bytes_acked, true
		}
	})
	return received, acked, ok
}
