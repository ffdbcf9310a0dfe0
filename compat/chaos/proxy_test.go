package chaos

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy is the network between two servers. It can misbehave.
type proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu     sync.Mutex
	cond   *sync.Cond
	conns  map[net.Conn]bool
	mood   mood
	closed bool
}

// mood is how a network treats its connections.
type mood int

const (
	healthy  mood = iota
	slow          // each piece of data waits a while
	halfOpen      // nothing arrives, and nobody is told
	cut           // all connections are closed, and new ones as soon as they are made
)

// slowness is what a piece of data waits in a slow network.
const slowness = 50 * time.Millisecond

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l, target: target, conns: map[net.Conn]bool{}}
	p.cond = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.DialTimeout("tcp4", p.target, time.Second)
		if err != nil || !p.add(near, far) {
			near.Close()
			continue
		}
		p.wg.Go(func() { p.copy(far, near) })
		p.wg.Go(func() { p.copy(near, far) })
	}
}

// add notes two ends; false: there shall be no connection now.
func (p *proxy) add(near, far net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mood == cut || p.closed {
		far.Close()
		return false
	}
	p.conns[near], p.conns[far] = true, true
	return true
}

func (p *proxy) copy(to, from net.Conn) {
	defer p.drop(to, from)
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !p.pass() {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// pass waits until data may go on; false: the proxy has ended.
func (p *proxy) pass() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mood == slow {
		p.mu.Unlock()
		time.Sleep(slowness) //lint:sleep the delay is what is tested
		p.mu.Lock()
	}
	for p.mood == halfOpen && !p.closed {
		p.cond.Wait()
	}
	return !p.closed
}

func (p *proxy) drop(conns ...io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c.(net.Conn))
		c.Close()
	}
}

// set changes how the network behaves. A connection that was half open stays dead: the bytes that
// were held up are lost.
func (p *proxy) set(m mood) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m == cut || p.mood == halfOpen && m != halfOpen {
		for c := range p.conns {
			c.Close()
		}
		clear(p.conns)
	}
	p.mood = m
	p.cond.Broadcast()
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
	p.cond.Broadcast()
	p.mu.Unlock()
	p.wg.Wait()
}
