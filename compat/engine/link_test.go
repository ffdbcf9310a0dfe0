package engine

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// link is the way to a PostgreSQL, from one server or from the standby.
type link struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	cond   *sync.Cond
	target string // where it leads
	state  condition
	conns  map[net.Conn]net.Conn
	mute   map[net.Conn]bool // connections that nothing passes any more, and nobody is told
	closed bool
	lost   int // answers of commits that were swallowed
	turn   int // commits
}

// condition of a link. The zero value is a good one.
type condition struct {
	held    bool          // nothing arrives, and nobody is told
	shut    bool          // connections break, and new ones too
	delay   time.Duration // of each piece of data
	swallow int           // of so many answers of commits one is lost, and its connection
}

func newLink(t *testing.T, target string) *link {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	l := &link{listener: listener, target: target, conns: map[net.Conn]net.Conn{}, mute: map[net.Conn]bool{}}
	l.cond = sync.NewCond(&l.mu)
	l.wg.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

func (l *link) addr() string { return l.listener.Addr().String() }

func (l *link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.connect(near) })
	}
}

func (l *link) connect(near net.Conn) {
	defer near.Close()
	l.mu.Lock()
	target := l.target
	l.mu.Unlock()
	if !l.pass(near) {
		return
	}
	far, err := net.DialTimeout("tcp4", target, time.Second)
	if err != nil {
		return
	}
	defer far.Close()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.conns[near] = far
	l.mu.Unlock()
	c := &commits{}
	both := sync.WaitGroup{}
	both.Go(func() { l.copy(near, far, near, c.asked) })
	both.Go(func() {
		l.copy(near, near, far, func(b []byte) bool { return !c.answered(b) || !l.loses() })
	})
	both.Wait()
	l.mu.Lock()
	delete(l.conns, near)
	delete(l.mute, near)
	l.mu.Unlock()
}

// copy passes on what comes, as long as look agrees. The end of a connection waits as data do.
func (l *link) copy(near, to, from net.Conn, look func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if !l.pass(near) || err != nil || !look(buf[:n]) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// pass waits until data of a connection may go on; false: the connection has to break.
func (l *link) pass(near net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delay := l.state.delay; delay > 0 {
		l.mu.Unlock()
		time.Sleep(delay) //lint:sleep the delay is what is tested
		l.mu.Lock()
	}
	for (l.state.held || l.mute[near]) && !l.closed {
		l.cond.Wait()
	}
	return !l.state.shut && !l.closed
}

// loses says whether the answer of a commit gets lost.
func (l *link) loses() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.swallow == 0 {
		return false
	}
	l.turn++
	if l.turn%l.state.swallow != 0 {
		return false
	}
	l.lost++
	return true
}

// set changes the condition. With breaks connections end; what is under way on them is lost.
func (l *link) set(c condition, breaks bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = c
	if breaks || c.shut {
		for near, far := range l.conns {
			near.Close()
			far.Close()
			delete(l.mute, near)
		}
	}
	l.cond.Broadcast()
}

// forget has the connections that there are pass nothing any more, as a firewall that was started
// again. New ones are good. PostgreSQL finds out by itself (tcp_keepalives_idle), here at once; who
// has dialled is not told.
func (l *link) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for near, far := range l.conns {
		l.mute[near] = true
		far.Close()
	}
}

// lead leads to another PostgreSQL from now on.
func (l *link) lead(target string) {
	l.mu.Lock()
	l.target = target
	l.mu.Unlock()
	l.set(condition{}, true)
}

func (l *link) swallowed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

func (l *link) close() {
	l.listener.Close()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.set(condition{}, true)
	l.wg.Wait()
}
