package netio

import (
	"os"
	"syscall"
	"time"
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

// poller waits for news of sockets: by Go's poller, so that a goroutine that waits needs no thread,
// or in a vigil (vigil.go). The sockets are in an epoll(7), which is the only member of another
// epoll, which Go's poller watches:
//
//	Go's poller ─► outer ─► sockets ─► …
//	                     └ armed: events of the sockets reach Go's poller
//
// The member is not armed during vigils, and from a poll that had not to wait until one that has.
// Otherwise each event would wake the thread that waits in Go's poller, too: under load that was a
// thousand times in a second, and each time it got into the leader's way.
type poller struct {
	file    *os.File
	raw     syscall.RawConn // of file, which is the outer epoll
	outer   int             // its descriptor, which file closes
	sockets int
	armed   bool
	events  [mostEvents]unix.EpollEvent
	n       int
	wait    bool // for the first event
	asked   int  // times in the latest poll
	vigil   func(now time.Time) time.Duration
	kept    time.Duration // the latest poll's vigil; 0: there was none
	longest time.Duration // of its looks
	failed  error
	ask     func(fd uintptr) bool // asks as a value, made once
}

func newPoller() (*poller, error) {
	sockets, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	p := &poller{sockets: sockets}
	if err := p.watch(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// watch has Go's poller watch the poller.
func (p *poller) watch() error {
	var err error
	if p.outer, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(p.outer, true); err != nil { // so that Go's poller takes it
		unix.Close(p.outer)
		return os.NewSyscallError("fcntl", err)
	}
	p.file = os.NewFile(uintptr(p.outer), "loop")
	p.ask = p.asks
	if p.raw, err = p.file.SyscallConn(); err != nil {
		return err
	}
	if err := unix.EpollCtl(p.outer, unix.EPOLL_CTL_ADD, p.sockets, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	p.armed = true
	return nil
}

// arm sets whether events of the sockets reach Go's poller.
func (p *poller) arm(armed bool) {
	if p.armed == armed {
		return
	}
	p.armed = armed
	e := unix.EpollEvent{}
	if armed {
		e.Events = unix.EPOLLIN
	}
	if err := unix.EpollCtl(p.outer, unix.EPOLL_CTL_MOD, p.sockets, &e); err != nil {
		p.failed = os.NewSyscallError("epoll_ctl", err) // fails never
	}
}

// add begins to watch a socket. If bytes have arrived already, the next poll tells so.
func (p *poller) add(fd int) error {
	err := unix.EpollCtl(p.sockets, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: watched, Fd: int32(fd)})
	return os.NewSyscallError("epoll_ctl", err)
}

// remove ends that.
func (p *poller) remove(fd int) {
	_ = unix.EpollCtl(p.sockets, unix.EPOLL_CTL_DEL, fd, nil) // fails never for a socket that is watched
}

// poll asks for sockets with news. If wait is set, poll waits for the first of them. vigil returns
// for how long, at most, it does so awake; it is called if there are none at once.
func (p *poller) poll(wait bool, vigil func(now time.Time) time.Duration) error {
	p.wait, p.vigil, p.n, p.asked, p.kept, p.longest, p.failed = wait, vigil, 0, 0, 0, 0, nil
	if err := p.raw.Read(p.ask); err != nil {
		return err
	}
	return p.failed
}

// asks is called by package os: at once, and after false when there may be events. It is never
// called after close, which waits for it.
func (p *poller) asks(uintptr) bool {
	p.asked++
	if p.take() || !p.wait {
		if p.asked == 1 && p.wait {
			p.arm(false)
		}
		return true
	}
	if p.asked == 1 && p.keepVigil() {
		return true
	}
	if p.armed {
		return false
	}
	p.arm(true)
	return p.take() || p.failed != nil // Go's poller may not hear of what has come before
}

// keepVigil asks for events again and again, for as long as the vigil may take, and reports whether
// there are any, or an error.
func (p *poller) keepVigil() bool {
	began := time.Now()
	length := p.vigil(began)
	if length == 0 {
		return false
	}
	p.arm(false)
	for at := began; ; {
		found := p.take()
		now := time.Now()
		p.kept, p.longest, at = now.Sub(began), max(p.longest, now.Sub(at)), now
		if found || p.kept >= length {
			return found
		}
	}
}

// take takes events, and reports whether there are any, or an error.
func (p *poller) take() bool {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.sockets), uintptr(unsafe.Pointer(&p.events[0])), mostEvents, 0, 0, 0)
		switch errno {
		case 0:
			p.n = int(n)
			return n > 0
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

// close ends the poll under way.
func (p *poller) close() {
	if p.file != nil {
		p.file.Close()
	}
	unix.Close(p.sockets)
}
