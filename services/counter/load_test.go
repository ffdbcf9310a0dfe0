package counter_test

import (
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gotycoon/client/wire/counter/frame"
)

// load keeps connections busy from one thread, so that it takes as little as possible from the
// server that it measures: each connection acquires and releases by turns, and sends the next
// requests when it has all replies.
type load struct {
	conns   int
	depth   int                   // pairs of requests that are sent together
	name    func(conn int) string // of the counter
	epoll   int
	clients map[int32]*loadConn
	close   []io.Closer
}

// loadConn is one connection of a load.
type loadConn struct {
	fd       uintptr
	requests []byte
	expected int // bytes of replies
	got      int
}

// connect opens the connections.
func (l *load) connect(tb testing.TB, addr string) {
	var err error
	l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	require.NoError(tb, err)
	l.clients = map[int32]*loadConn{}
	for i := range l.conns {
		socket, err := net.Dial("tcp", addr)
		require.NoError(tb, err)
		file, err := socket.(*net.TCPConn).File()
		require.NoError(tb, err)
		l.close = append(l.close, socket, file)
		fd := int(file.Fd())
		require.NoError(tb, unix.SetNonblock(fd, true))
		require.NoError(tb, unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
		c := &loadConn{fd: uintptr(fd)}
		for range l.depth {
			args := frame.Args{Resources: 1, Maximum: 1 << 20, Name: []byte(l.name(i))}
			c.requests = frame.AppendRequest(c.requests, frame.Acquire, 1, args)
			c.requests = frame.AppendRequest(c.requests, frame.Release, 2, args)
			c.expected += 2*frame.HeaderLen + 4
		}
		l.clients[int32(fd)] = c
	}
}

func (l *load) disconnect() {
	_ = unix.Close(l.epoll) // nothing is lost
	for _, c := range l.close {
		_ = c.Close() // nor here
	}
}

// run sends requests for a time and returns the number of those that were answered per second.
func (l *load) run(tb testing.TB, length time.Duration) float64 {
	for _, c := range l.clients {
		require.NoError(tb, c.send())
	}
	events := make([]unix.EpollEvent, l.conns)
	buf := make([]byte, 64<<10)
	start := time.Now()
	rounds, busy := 0, l.conns
	for busy > 0 {
		n, err := unix.EpollWait(l.epoll, events, 5000)
		if err == unix.EINTR {
			continue
		}
		require.NoError(tb, err)
		require.NotZero(tb, n, "no reply for five seconds")
		over := time.Since(start) > length
		for _, e := range events[:n] {
			c := l.clients[e.Fd]
			done, err := c.receive(buf)
			require.NoError(tb, err)
			if !done {
				continue
			}
			rounds++
			if over {
				busy--
				continue
			}
			require.NoError(tb, c.send())
		}
	}
	return float64(rounds*2*l.depth) / time.Since(start).Seconds()
}

func (c *loadConn) send() error {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, c.fd, uintptr(unsafe.Pointer(&c.requests[0])), uintptr(len(c.requests)))
	if errno != 0 || int(n) != len(c.requests) {
		return fmt.Errorf("sent %d of %d bytes: %w", n, len(c.requests), errno)
	}
	return nil
}

// receive tells whether all replies are there.
func (c *loadConn) receive(buf []byte) (bool, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, c.fd, uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	if errno != 0 || n == 0 {
		return false, fmt.Errorf("received %d bytes: %w", n, errno)
	}
	c.got += int(n)
	switch {
	case c.got > c.expected:
		return false, fmt.Errorf("received %d bytes instead of %d", c.got, c.expected)
	case c.got < c.expected:
		return false, nil
	}
	c.got = 0
	return true, nil
}
