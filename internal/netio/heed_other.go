//go:build !linux

package netio

import "golang.org/x/sys/unix"

// peerShut is the event of a socket whose other end sends no more. These systems have no such
// event: poll makes it.
const peerShut = 0x2000

// poll returns the events of a socket without waiting. The end of what the other end sends is seen
// when everything before it has been read. A socket whose other end only sends no more hangs up
// where input is asked for, so poll asks again without it: the client may still want its answer.
func poll(fd uintptr) (events int16) {
	events = ask(fd, unix.POLLIN|unix.POLLOUT)
	if events&(unix.POLLIN|unix.POLLHUP) == 0 {
		return events
	}
	var one [1]byte
	if n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT); n != 0 || err != nil {
		return events
	}
	return ask(fd, unix.POLLOUT)&^unix.POLLHUP | peerShut
}

// ask returns which of some events a socket has.
func ask(fd uintptr, wanted int16) int16 {
	fds := []unix.PollFd{{Fd: int32(fd), Events: wanted}}
	if _, err := unix.Poll(fds, 0); err != nil {
		return 0
	}
	return fds[0].Revents
}
