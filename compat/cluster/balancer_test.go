package cluster

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/history"
)

// balancer is one address for old clients: it connects them to any member that listens. The
// member moves what only the primary may do to the primary (-forward).
type balancer struct {
	listener net.Listener
	ports    []int
	wg       sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

func newBalancer(t *testing.T, ports ...int) *balancer {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	b := &balancer{listener: l, ports: ports, open: map[net.Conn]struct{}{}}
	b.wg.Go(b.accept)
	t.Cleanup(b.close)
	return b
}

func (b *balancer) addr() string { return b.listener.Addr().String() }

func (b *balancer) accept() {
	for n := 0; ; n++ {
		near, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.wg.Go(func() { b.connect(near, n) })
	}
}

// connect tries one member after the other.
func (b *balancer) connect(near net.Conn, n int) {
	defer near.Close()
	for i := range b.ports {
		far, err := net.DialTimeout("tcp4", fmt.Sprintf("127.0.0.1:%d", b.ports[(n+i)%len(b.ports)]), history.DialLimit)
		if err != nil {
			continue
		}
		if !b.note(near, far) {
			far.Close()
			return
		}
		var both sync.WaitGroup
		for _, way := range [][2]net.Conn{{far, near}, {near, far}} {
			both.Go(func() {
				_, _ = io.Copy(way[0], way[1])
				near.Close()
				far.Close()
			})
		}
		both.Wait()
		b.forget(near, far)
		return
	}
}

func (b *balancer) note(conns ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		b.open[c] = struct{}{}
	}
	return !b.closed
}

func (b *balancer) forget(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		delete(b.open, c)
	}
}

func (b *balancer) close() {
	b.listener.Close()
	b.mu.Lock()
	b.closed = true
	for c := range b.open {
		c.Close()
	}
	b.mu.Unlock()
	b.wg.Wait()
}
