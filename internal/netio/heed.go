package netio

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gotycoon/db/owed"
)

var (
	// ErrGone ends a request whose client has gone: nobody would read the reply.
	ErrGone = errors.New("the client has gone")

	// ErrLong ends a request that has been served for longer than Limits allow.
	ErrLong = errors.New("the request has taken too long (-answer-time): ask for less at a time, or have the limit raised")
)

// lookEvery is the time between two looks at the client of a request that takes long.
const lookEvery = 10 * time.Millisecond

// serving is what is known of a request that takes long.
type serving struct {
	began  time.Time // when it was first asked about; zero: it has not been
	looked time.Time // when the socket was looked at last
	hinted bool      // the beginning of the reply has been sent
	sent   int       // bytes of Out that have been sent
}

// Heed returns what ends the work for a request when its client has gone, or when it has taken longer than Limits allow. It is for the
// goroutine of the connection, for all its requests.
//
// A client that has closed its connection and one that has only shut down its own direction, to read the replies to what it has sent,
// look the same from here: the end of the stream has come. Only what is sent tells the two apart, since the system of the first one
// refuses it (RST). So when the end has come, opening is sent, which is what the reply of any request of the protocol begins with, and the
// reply goes on behind it. Where a protocol has no such beginning opening is empty, and a client counts as gone when its system says
// so: when it has been killed with replies unread, say. The opening cannot be sent before earlier replies, which are the caller's to send
// (Flush) before work that takes long.
func (c *Conn) Heed(opening string) owed.Heed {
	return func() error { return c.heed(opening) }
}

func (c *Conn) heed(opening string) error {
	s, now := &c.serving, time.Now()
	if s.began.IsZero() {
		s.began, s.looked = now, now
		return nil
	}
	if limit := c.answerTime(); limit > 0 && now.Sub(s.began) > limit {
		return ErrLong
	}
	if now.Sub(s.looked) < lookEvery {
		return nil
	}
	s.looked = now
	return c.look(opening)
}

// answerTime is how long a request may be served.
func (c *Conn) answerTime() time.Duration {
	if c.opts.Limits == nil {
		return 0
	}
	return time.Duration(c.opts.Limits.answer.Load())
}

// look returns ErrGone if there is nobody at the other end.
func (c *Conn) look(opening string) error {
	events := c.events()
	switch {
	case events&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0:
		return ErrGone
	case events&unix.POLLRDHUP == 0 || events&unix.POLLOUT == 0 || c.serving.hinted || opening == "":
		return nil
	}
	return c.hint(opening)
}

// Gone reports whether the other end has closed the connection, or its own direction. Any goroutine may call Gone.
func (c *Conn) Gone() bool {
	return c.events()&(unix.POLLRDHUP|unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
}

// events returns what is known of the connection's socket; nothing where there is none. One that is closed here, by Cut for one, counts as
// invalid.
func (c *Conn) events() (events int16) {
	socket := c.socket()
	if socket == nil {
		return 0
	}
	rc, err := socket.SyscallConn()
	if err == nil {
		err = rc.Control(func(fd uintptr) { events = poll(fd) })
	}
	if err != nil {
		return unix.POLLNVAL
	}
	return events
}

// poll returns what is known of a socket, without any wait.
func poll(fd uintptr) (events int16) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP | unix.POLLOUT}}
	if _, err := unix.Poll(fds, 0); err != nil {
		return 0
	}
	return fds[0].Revents
}

// hint sends the beginning of the reply. There is send space for it, so this does not wait.
func (c *Conn) hint(opening string) error {
	if len(c.Out) > 0 {
		return nil // an earlier reply has to leave first, which may have to wait for the log
	}
	c.serving.hinted = true
	if c.write([]byte(opening)) != nil {
		return ErrGone
	}
	c.serving.sent = len(opening)
	return nil
}

// unsent returns what is still to be sent of Out.
func (c *Conn) unsent() []byte {
	n := min(c.serving.sent, len(c.Out))
	c.serving.sent -= n
	return c.Out[n:]
}

// socket returns the socket of the connection, below TLS; nil where there is none.
func (c *Conn) socket() syscall.Conn {
	switch n := c.net.(type) {
	case syscall.Conn:
		return n
	case interface{ Socket() syscall.Conn }:
		return n.Socket()
	}
	return nil
}

// endServing forgets what is known of the request.
func (c *Conn) endServing() {
	if !c.serving.began.IsZero() {
		c.serving = serving{sent: c.serving.sent}
	}
}
