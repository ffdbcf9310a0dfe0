package pg_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between an engine and PostgreSQL. It cuts the connection of the next message in a
// direction that the test has chosen, and swallows the message.
type proxy struct {
	listener net.Listener
	target   string
	answers  atomic.Int32 // of PostgreSQL that are to be swallowed
	requests atomic.Int32
	swallows atomic.Int32 // so far
	pooler   bool         // it announces processes of its own

	mu    sync.Mutex
	conns map[net.Conn]bool
	mute  map[net.Conn]bool // nothing passes any more, and nobody is told
}

// newProxy returns a proxy and the URL by which it is used.
func newProxy(t *testing.T, target string) (*proxy, string) {
	u, err := url.Parse(target)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l, target: u.Host, conns: map[net.Conn]bool{}, mute: map[net.Conn]bool{}}
	u.Host = l.Addr().String()
	go p.accept()
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
	})
	return p, u.String()
}

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		p.conns[near], p.conns[far] = true, true
		p.mu.Unlock()
		go p.pass(far, near, near, &p.requests)
		go p.pass(near, far, near, &p.answers)
	}
}

// pass copies what comes, until it has to swallow something.
func (p *proxy) pass(to, from, near net.Conn, swallow *atomic.Int32) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if p.muted(near) {
			_, _ = io.Copy(io.Discard, from) // until one side has noticed
			return
		}
		if swallow.Load() > 0 && swallow.Add(-1) >= 0 {
			p.swallows.Add(1)
			return
		}
		if at := bytes.Index(buf[:n], []byte("K\x00\x00\x00\x0c")); p.pooler && to == near && at >= 0 {
			buf[at+8]++ // of the process that PostgreSQL announces
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// forget has the connections that there are pass nothing any more.
func (p *proxy) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		p.mute[c] = true
	}
}

func (p *proxy) muted(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mute[c]
}

// cut cuts all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}
