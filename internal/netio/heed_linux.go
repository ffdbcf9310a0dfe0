package netio

import "golang.org/x/sys/unix"

// peerShut is the event of a socket whose other end sends no more.
const peerShut = unix.POLLRDHUP

// poll returns the events of a socket without waiting.
func poll(fd uintptr) (events int16) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: peerShut | unix.POLLOUT}}
	if _, err := unix.Poll(fds, 0); err != nil {
		return 0
	}
	return fds[0].Revents
}
