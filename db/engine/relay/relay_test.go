package relay_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/mem"
	"gotycoon/db/engine/relay"
)

// clients are the waiters of one server.
type clients struct {
	mu      sync.Mutex
	waiting map[string]int
	woken   map[string]int
	leave   func() // called by Waiting: a client may leave behind it
}

func (c *clients) Waiting(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.waiting[name]
	if c.leave != nil {
		c.leave()
	}
	return n
}

func (c *clients) Anybody() bool { return true }

func (c *clients) Wake(name string, broadcast bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.waiting[name]
	if !broadcast {
		n = min(n, 1)
	}
	c.waiting[name] -= n
	c.woken[name] += n
	return n
}

func (c *clients) of(name string) (woken int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.woken[name]
}

// server is one of several that share an engine.
type server struct {
	*relay.Relay
	clients
}

// cluster returns three servers that listen.
func cluster(t *testing.T, store *mem.Store) (all []*server) {
	t.Helper()
	for _, addr := range []string{"a", "b", "c"} {
		e := store.Server(addr)
		s := &server{relay.New(e.Signals()), clients{waiting: map[string]int{}, woken: map[string]int{}}}
		t.Cleanup(func() {
			s.Close()
			_ = e.Close()
		})
		s.Serve(&s.clients)
		s.Listen()
		all = append(all, s)
	}
	for _, s := range all {
		s.listens(t, true)
	}
	return all
}

func (s *server) listens(t *testing.T, want bool) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Stats().Listening == want }, 10*time.Second, time.Millisecond)
}

// settle returns when all servers have heard what was sent before. A broadcast of one's own wakes
// nobody here, so two servers send one.
func settle(t *testing.T, all []*server) {
	t.Helper()
	const end = "the end"
	for i, s := range all {
		s.mu.Lock()
		s.waiting[end], s.woken[end] = 1, 0
		s.mu.Unlock()
		defer func() { require.Equal(t, 1, s.of(end), i) }()
	}
	all[0].Send(end, true)
	for _, s := range all[1:] {
		require.Eventually(t, func() bool { return s.of(end) == 1 }, 10*time.Second, time.Millisecond)
	}
	all[1].Send(end, true)
	require.Eventually(t, func() bool { return all[0].of(end) == 1 }, 10*time.Second, time.Millisecond)
}

func sum(all []*server, name string) (woken int) {
	for _, s := range all {
		woken += s.of(name)
	}
	return woken
}

func TestBroadcastWakesAllElsewhere(t *testing.T) {
	all := cluster(t, mem.New(mem.Options{}))
	for _, s := range all {
		s.waiting["x"] = 2
	}
	all[0].Send("x", true)
	settle(t, all)
	require.Equal(t, []int{0, 2, 2}, []int{all[0].of("x"), all[1].of("x"), all[2].of("x")}, "a server has woken its own before")
	require.EqualValues(t, 2, all[0].Stats().Sent)
}

// However many servers have somebody who waits, each signal wakes one of them, and none is lost
// while somebody waits.
func TestASignalWakesOneOfAll(t *testing.T) {
	all := cluster(t, mem.New(mem.Options{}))
	all[1].waiting["x"], all[2].waiting["x"] = 3, 4
	for n := range 9 {
		all[0].Send("x", false)
		if n < 3 { // one after the other, and then all at once
			require.Eventually(t, func() bool { return sum(all, "x") == n+1 }, 10*time.Second, time.Millisecond)
		}
	}
	require.Eventually(t, func() bool { return sum(all, "x") == 7 }, 10*time.Second, time.Millisecond)
	settle(t, all)
	require.Equal(t, 7, sum(all, "x"))
	all[0].Send("nobody waits", false)
	settle(t, all)
	require.Zero(t, sum(all, "nobody waits"))
}

// A client that leaves while the servers find out whom to wake does not take the signal with it.
func TestASignalFindsAnotherWhenTheClientHasLeft(t *testing.T) {
	all := cluster(t, mem.New(mem.Options{}))
	b, c := all[1], all[2]
	b.waiting["x"] = 1
	b.leave = func() { // b has answered by the time c has somebody
		b.waiting["x"], b.leave = 0, nil
		c.mu.Lock()
		c.waiting["x"] = 1
		c.mu.Unlock()
	}
	all[0].Send("x", false)
	require.Eventually(t, func() bool { return c.of("x") == 1 }, 10*time.Second, time.Millisecond)
	require.Zero(t, b.of("x"))
}

func TestALostConnectionIsMadeAgain(t *testing.T) {
	var mu sync.Mutex
	away := false
	setAway := func(yes bool) {
		mu.Lock()
		defer mu.Unlock()
		away = yes
	}
	store := mem.New(mem.Options{Faults: func(c mem.Call) (f mem.Fault) {
		mu.Lock()
		defer mu.Unlock()
		if away && (c.Name == mem.Listen || c.Name == mem.Signal) {
			f = mem.Fault{Kind: engine.Undone, Away: true}
		}
		return f
	}})
	all := cluster(t, store)
	setAway(true)
	store.CutSignals()
	for _, s := range all {
		s.listens(t, false)
		require.Eventually(t, func() bool { return s.Stats().Deaf != nil }, 10*time.Second, time.Millisecond)
	}
	all[0].Send("x", false)
	require.Eventually(t, func() bool { return all[0].Stats().Dropped == 1 }, 10*time.Second, time.Millisecond)
	setAway(false)
	for _, s := range all {
		s.listens(t, true)
		require.NoError(t, s.Stats().Deaf)
	}
	all[1].waiting["x"] = 1
	settle(t, all)
	require.Zero(t, sum(all, "x"), "a signal is not kept")
	all[0].Send("x", false)
	settle(t, all)
	require.Eventually(t, func() bool { return all[1].of("x") == 1 }, 10*time.Second, time.Millisecond)
}

// Signals of the longest names go in several messages. An engine that does not answer keeps nobody
// waiting: what is too much is dropped.
func TestManySignals(t *testing.T) {
	answer := make(chan struct{})
	var once sync.Once
	store := mem.New(mem.Options{Faults: func(c mem.Call) (f mem.Fault) {
		if c.Name == mem.Signal && c.Server == "a" {
			once.Do(func() { <-answer })
		}
		return f
	}})
	all := cluster(t, store)
	name := strings.Repeat("x", relay.LongestName-1)
	of := func(i int) string { return name + string(rune('0'+i%50)) }
	const many = 5000
	for i := range many {
		if i < 200 {
			all[1].mu.Lock()
			all[1].waiting[of(i)] = 4
			all[1].mu.Unlock()
			all[0].Send(of(i), i%2 == 0) // a broadcast, or four signals
		} else {
			all[0].Send("nobody waits", false)
		}
	}
	require.NotZero(t, all[0].Stats().Dropped)
	close(answer)
	require.Eventually(t, func() bool {
		s := all[0].Stats()
		return s.Sent+s.Dropped >= many-75 // each broadcast of a name but one is in the queue already
	}, 10*time.Second, time.Millisecond)
	settle(t, all)
	for i := range 50 {
		require.Equal(t, 4, all[1].of(of(i)), i)
	}
}
