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

// serving describes the request being served, if it takes long.
type serving struct {
	began  time.Time // first call of heed; zero: there was none
	looked time.Time // last look at the socket
	worked time.Time // since when the request works without a break
	hinted bool      // the beginning of the reply has been sent
	sent   int       // bytes of Out that have been sent
}

// Heed returns a function that long work for a request calls now and then. An error of the function
// ends the work: the client has gone (ErrGone), or the request has taken longer than Limits allow
// (ErrLong). Where many requests work for long the function also sleeps, see lane. Only the
// goroutine of the connection may call the function; it may be used for all requests of the
// connection.
//
// For the server, a client that has closed its connection looks like a client that has only shut
// down its sending direction and still reads replies: in both cases the server reads the end of the
// stream. Only sending tells the two clients apart: the system of the first client answers with a
// refusal (RST). So at the end of the stream the function sends opening, the bytes with which every
// reply of the protocol begins; Flush sends the rest of the reply later. The opening cannot
// overtake earlier replies, so the caller sends them (Flush) before long work.
//
// If replies of a protocol have no common beginning, opening is empty. Then the client counts as
// gone only when its system has refused something already, for example because the client was
// killed before it had read all replies.
func (c *Conn) Heed(opening string) owed.Heed {
	return func() error { return c.heed(opening) }
}

func (c *Conn) heed(opening string) error {
	s, now := &c.serving, time.Now()
	if s.began.IsZero() {
		s.began, s.looked, s.worked = now, now, now
		return nil
	}
	c.takeTurns(now)
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

// look returns ErrGone if the client has gone.
func (c *Conn) look(opening string) error {
	events := c.events()
	switch {
	case events&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0:
		return ErrGone
	case events&peerShut == 0 || events&unix.POLLOUT == 0 || c.serving.hinted || opening == "":
		return nil
	}
	return c.hint(opening)
}

// Gone reports whether the client has closed the connection, or its own direction. Any goroutine
// may call Gone.
func (c *Conn) Gone() bool {
	return c.events()&(peerShut|unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
}

// events returns the poll events of the connection's socket, 0 if there is no socket. A socket that
// was closed on this side, by Cut for example, counts as invalid.
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

// hint sends the beginning of the reply. The socket has send space, so hint does not wait.
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

// socket returns the socket of the connection, below TLS if there is TLS; nil if there is none.
func (c *Conn) socket() syscall.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := c.net.(type) {
	case syscall.Conn:
		return n
	case interface{ Socket() syscall.Conn }:
		return n.Socket()
	}
	return nil
}

// endServing forgets the request that was served. The bytes that its opening has sent stay counted
// until Flush has sent the rest.
func (c *Conn) endServing() { c.serving = serving{sent: c.serving.sent} }
