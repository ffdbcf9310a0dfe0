package netio

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watched are the events that a loop hears of. A socket tells each arrival once (edge-triggered):
// whoever serves a connection reads all that has come before the connection rests.
const watched = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

// ended are the events of a connection that may not tell anything more.
const ended = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR

// mostEvents is how many events are taken at once.
const mostEvents = 256

// poller is an epoll(7) descriptor that Go's poller watches in turn: a goroutine that waits for it
// needs no thread.
type poller struct {
	file   *os.File
	raw    syscall.RawConn // of file
	fd     int
	events [mostEvents]unix.EpollEvent
	n      int
	wait   bool // for the first event
	asked  int  // times in the latest poll
	failed error
	ask    func(fd uintptr) bool // asks as a value, made once
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that Go's poller takes it
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &poller{file: os.NewFile(uintptr(fd), "loop"), fd: fd}
	p.ask = p.asks
	if p.raw, err = p.file.SyscallConn(); err != nil {
		p.file.Close()
		return nil, err
	}
	return p, nil
}

// add begins to watch a socket. If bytes have arrived already, the next poll tells so.
func (p *poller) add(fd int) error {
	err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: watched, Fd: int32(fd)})
	return os.NewSyscallError("epoll_ctl", err)
}

// remove ends that.
func (p *poller) remove(fd int) {
	_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, fd, nil) // fails never for a socket that is watched
}

// poll calls event for each socket with news. If wait is set, poll waits for the first of them.
func (p *poller) poll(wait bool) error {
	p.wait, p.n, p.asked, p.failed = wait, 0, 0, nil
	if err := p.raw.Read(p.ask); err != nil {
		return err
	}
	return p.failed
}

// asks is called by package os: at once, and after false when there are events.
func (p *poller) asks(fd uintptr) bool {
	p.asked++
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&p.events[0])), mostEvents, 0, 0, 0)
		switch errno {
		case 0:
			p.n = int(n)
			return n > 0 || !p.wait
		case syscall.EINTR:
		default:
			p.failed = os.NewSyscallError("epoll_pwait", errno)
			return true
		}
	}
}

// slept reports whether the latest poll has let other goroutines run.
func (p *poller) slept() bool { return p.asked > 1 }

// each calls news for each socket that the latest poll has found.
func (p *poller) each(news func(fd int, over bool)) {
	for _, e := range p.events[:p.n] {
		news(int(e.Fd), e.Events&ended != 0)
	}
}

func (p *poller) close() { p.file.Close() }
