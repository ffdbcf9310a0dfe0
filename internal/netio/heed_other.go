//go:build !linux

package netio

import "golang.org/x/sys/unix"

// peerShut is the event of a socket whose other end sends no more. These systems have no such
// event: poll makes it.
const peerShut = 0x2000

// poll returns the events of a socket without waiting. The end of what the other end sends is seen
// when everything before it has been read.
func poll(fd uintptr) (events int16) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT}}
	if _, err := unix.Poll(fds, 0); err != nil {
		return 0
	}
	if events = fds[0].Revents; events&unix.POLLIN == 0 {
		return events
	}
	var one [1]byte
	if n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT); n == 0 && err == nil {
		events |= peerShut
	}
	return events
}
