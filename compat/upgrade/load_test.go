package upgrade

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// load is clients that each set keys of their own, wherever an update is taken.
type load struct {
	t     *testing.T
	nodes []*node
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu   sync.Mutex
	sure map[string]string
	last time.Time     // of an acknowledgement
	gap  time.Duration // longest time without one since the last look
}

// startLoad returns when an update has been acknowledged.
func startLoad(t *testing.T, nodes ...*node) *load {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{t: t, nodes: nodes, stop: stop, sure: map[string]string{}, last: time.Now()}
	for i := range 4 {
		l.done.Go(func() { l.run(ctx, i) })
	}
	t.Cleanup(l.end)
	l.goesOn()
	return l
}

func (l *load) run(ctx context.Context, id int) {
	at := id
	c := client.New(l.nodes[at%len(l.nodes)].addr(), client.Options{Timeout: 3 * time.Second})
	for n := 0; ctx.Err() == nil; n++ {
		key, value := fmt.Sprintf("k-%d-%d", id, n%200), fmt.Sprint(n)
		// An update without an answer may have taken place: the key belongs to nobody else, so it is
		// sent again until it is acknowledged.
		for ctx.Err() == nil {
			if err := c.DB("").Set(ctx, key, []byte(value), client.Never); err == nil {
				l.acknowledged(key, value)
				break
			}
			c.Close()
			at++
			c = client.New(l.nodes[at%len(l.nodes)].addr(), client.Options{Timeout: 3 * time.Second})
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	c.Close()
}

func (l *load) acknowledged(key, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.gap = max(l.gap, now.Sub(l.last))
	l.last, l.sure[key] = now, value
}

// goesOn waits until another update is acknowledged.
func (l *load) goesOn() {
	l.t.Helper()
	begun := time.Now()
	eventually(l.t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.last.After(begun)
	}, "nobody takes an update any more")
}

// longest returns the longest time without an acknowledgement since the last call.
func (l *load) longest() time.Duration {
	l.goesOn()
	l.mu.Lock()
	defer l.mu.Unlock()
	gap := l.gap
	l.gap = 0
	return gap.Round(time.Millisecond)
}

func (l *load) end() {
	l.stop()
	l.done.Wait()
}

// check ends the load, and requires that all servers get the same, with everything acknowledged.
func (l *load) check() {
	l.t.Helper()
	l.end()
	var has map[string]string
	eventually(l.t, func() bool {
		has = l.nodes[0].contents()
		for _, n := range l.nodes[1:] {
			if !maps.Equal(has, n.contents()) {
				return false
			}
		}
		return true
	}, "the servers have not the same")
	for key, value := range l.sure {
		var was, is int
		_, _ = fmt.Sscan(value, &was)
		_, _ = fmt.Sscan(has[key], &is)
		// The last update of a key may have been cut off by the end, and have taken place.
		require.True(l.t, is >= was && has[key] != "", "%s=%s was acknowledged, and there is %q", key, value, has[key])
	}
	l.t.Logf("%d keys, all of them everywhere", len(has))
}
