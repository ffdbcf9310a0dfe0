//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gotycoon/internal/histogram"
	"gotycoon/internal/rawio"
)

// A volley loads a server over many connections from one thread, with one request at a time on each
// connection. It has an epoll loop of its own instead of a goroutine for each connection: that
// takes less of the processors that the server shares, and Go's timers are only good to a
// millisecond while a program is idle.
//
// Coordinated omission. With a rate, every request has an intended time, and its wait counts from
// that time, whenever it was sent:
//
//	intended   0    1    2    3    4    5 ms
//	sent       0                   4,4,4,4,5
//	answered                       4,4,4,4,5      the server stood still for 4 ms
//	waits                          4,3,2,1,0 ms
//
// A generator that counts from the sending would report one wait of 4 ms and four of nothing: the
// server's silence has kept the generator from asking. Without a rate a connection sends when its
// reply has come, which finds out how much a server can do, and says little about waits.
type volley struct {
	addr     string
	protocol protocol
	conns    int
	rate     float64       // requests/s on all connections together; 0: as many as possible
	length   time.Duration // for so long, or
	count    int           // so many requests
}

// protocol makes requests, and finds the end of replies.
type protocol struct {
	request func(out []byte, s shot) []byte
	reply   func(in []byte) (size int, err error) // size is 0 while the reply is not whole
	inTwos  bool                                  // no connection ends between two requests that belong together
}

// shot is what a request is made of: its number on its connection, and a random number.
type shot struct {
	conn, number int
	random       uint64
}

// volleyResult is what a volley has found out.
type volleyResult struct {
	waits histogram.Histogram
	late  histogram.Histogram // from a request's intended time to its sending, on connections without debt
	count int
	wall  time.Duration
	cpu   time.Duration // of the server, where the caller has measured it
}

func (r *volleyResult) perSecond() float64 { return float64(r.count) / r.wall.Seconds() }

// never is the time of a request that is not to be sent.
const never = time.Duration(math.MaxInt64)

// due returns when request k of a connection is to be sent, after the beginning. The connections
// take turns. The time depends on k alone, so a late request does not move those after it.
func (v *volley) due(conn, k int) time.Duration {
	n := k*v.conns + conn
	if v.count > 0 && n >= v.count {
		return never
	}
	at := time.Duration(0)
	if v.rate > 0 {
		at = time.Duration(float64(n) * float64(time.Second) / v.rate)
	}
	if v.count == 0 && at >= v.length {
		return never
	}
	return at
}

// patience is how long a server may be behind at the end, before the rate is said to be too high.
const patience = 10 * time.Second

// run sends the requests and waits for all replies.
func (v *volley) run() (*volleyResult, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g, err := v.aim()
	defer g.close()
	if err != nil {
		return nil, err
	}
	for g.begin = time.Now(); ; {
		next, open, err := g.fireDue()
		if err != nil {
			return nil, err
		}
		if open == 0 && next == never {
			g.result.wall = time.Since(g.begin)
			return &g.result, nil
		}
		if v.rate > 0 && v.length > 0 && time.Since(g.begin) > 2*v.length+patience {
			return nil, fmt.Errorf("the server is too slow for %.0f requests/s", v.rate)
		}
		if err := g.await(next); err != nil {
			return nil, err
		}
	}
}

// gunner is a volley at work.
type gunner struct {
	*volley
	begin  time.Time
	conns  []barrel
	epoll  int
	timer  int
	armed  time.Duration // when the timer goes off
	rnd    *rand.Rand
	result volleyResult
	events []unix.EpollEvent
	out    []byte
}

// barrel is a connection of a volley.
type barrel struct {
	fd       int
	number   int           // of its next request
	waiting  bool          // for a reply
	intended time.Duration // time of the request that waits
	answered time.Duration // time of the last reply
	in       []byte
}

// timerEvent stands for the timer, where an event has the number of a connection.
const timerEvent = -1

// aim opens the connections.
func (v *volley) aim() (*gunner, error) {
	g := &gunner{volley: v, epoll: -1, timer: -1, rnd: rand.New(rand.NewPCG(1, uint64(v.conns))), events: make([]unix.EpollEvent, v.conns+1)}
	var err error
	if g.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return g, err
	}
	if g.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return g, err
	}
	if err := unix.EpollCtl(g.epoll, unix.EPOLL_CTL_ADD, g.timer, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: timerEvent}); err != nil {
		return g, err
	}
	for i := range v.conns {
		fd, err := dialRaw(v.addr)
		if err != nil {
			return g, err
		}
		g.conns = append(g.conns, barrel{fd: fd, in: make([]byte, 0, 64<<10)})
		if err := unix.EpollCtl(g.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			return g, err
		}
	}
	return g, nil
}

func (g *gunner) close() {
	for _, c := range g.conns {
		_ = unix.Close(c.fd) // a measurement's end
	}
	_, _ = unix.Close(g.timer), unix.Close(g.epoll)
}

// fireDue sends what is due on idle connections. It returns when the next request is due, and how
// many connections wait for replies.
func (g *gunner) fireDue() (next time.Duration, open int, err error) {
	next = never
	now := time.Since(g.begin)
	for i := range g.conns {
		c := &g.conns[i]
		if !c.waiting {
			at, err := g.fire(i, now)
			if err != nil {
				return 0, 0, err
			}
			next = min(next, at)
		}
		if c.waiting {
			open++
		}
	}
	return next, open, nil
}

// fire sends the next request of an idle connection if it is due, or returns when it is.
func (g *gunner) fire(i int, now time.Duration) (time.Duration, error) {
	c := &g.conns[i]
	at := g.due(i, c.number)
	between := g.protocol.inTwos && c.number%2 == 1
	if g.count == 0 && g.rate == 0 && now >= g.length && !between {
		at = never
	}
	if at > now {
		return at, nil
	}
	c.intended = at
	if g.rate == 0 {
		c.intended = now
	} else if c.answered <= at {
		g.result.late.Add(now - at)
	}
	g.out = g.protocol.request(g.out[:0], shot{conn: i, number: c.number, random: g.rnd.Uint64()})
	c.number++
	c.waiting = true
	n, errno := rawio.Write(uintptr(c.fd), g.out)
	if errno != 0 {
		return 0, fmt.Errorf("request: %w", errno)
	}
	if n < len(g.out) {
		return 0, errors.New("the system does not take a whole request")
	}
	return never, nil
}

// await waits for replies until a time, and takes those that have come.
func (g *gunner) await(until time.Duration) error {
	if until != never && until != g.armed {
		g.armed = until
		wait := max(1, until-time.Since(g.begin)) // 0 would stop the timer
		if err := unix.TimerfdSettime(g.timer, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(wait))}, nil); err != nil {
			return err
		}
	}
	const silence = 60_000 // ms
	n, err := unix.EpollWait(g.epoll, g.events, silence)
	if err == unix.EINTR {
		return nil
	}
	if err == nil && n == 0 {
		err = errors.New("no reply for a minute")
	}
	if err != nil {
		return err
	}
	for _, e := range g.events[:n] {
		if e.Fd != timerEvent {
			if err := g.take(int(e.Fd)); err != nil {
				return err
			}
		}
	}
	return nil
}

// take reads from a connection. If its reply is whole, the wait is counted, and what is due is
// sent.
func (g *gunner) take(i int) error {
	c := &g.conns[i]
	n, errno := rawio.Read(uintptr(c.fd), c.in[len(c.in):cap(c.in)])
	switch {
	case errno == syscall.EAGAIN:
		return nil
	case errno != 0:
		return fmt.Errorf("reply: %w", errno)
	case n == 0:
		return errors.New("the server has closed the connection, or its reply is too large")
	}
	c.in = c.in[:len(c.in)+n]
	size, err := g.protocol.reply(c.in)
	if err != nil || size == 0 {
		return err
	}
	if size != len(c.in) || !c.waiting {
		return fmt.Errorf("more than a reply: %q", c.in)
	}
	now := time.Since(g.begin)
	c.in, c.waiting, c.answered = c.in[:0], false, now
	g.result.waits.Add(now - c.intended)
	g.result.count++
	_, err = g.fire(i, now)
	return err
}

// dialRaw connects a socket that does not block.
func dialRaw(addr string) (fd int, err error) {
	to, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return -1, err
	}
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	err = errors.Join(
		unix.Connect(fd, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.SetNonblock(fd, true))
	if err != nil {
		_ = unix.Close(fd) // the first error is returned
		return -1, fmt.Errorf("%s: %w", addr, err)
	}
	return fd, nil
}
