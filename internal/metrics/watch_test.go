package metrics

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// served shows requests for keys to those who watch.
func served(r *Recorder, p *Protocol, database string, keys ...string) {
	for _, key := range keys {
		if r.Detailed() {
			r.Describe(Detail{Protocol: p, Command: 1, Database: database, Key: []byte(key)})
		}
	}
}

func TestMonitor(t *testing.T) {
	m, p := New(Options{Still: true}), NewProtocol("rpc", "get", "set")
	r := m.NewRecorder("10.0.0.1:5")
	require.False(t, r.Wanted())
	served(r, p, "a", "before")
	mon := m.NewMonitor(Filter{Database: "a", Prefix: "k", Peer: "10.0.0.1"})
	require.True(t, r.Wanted())
	served(r, p, "a", "k1", "other", "k\n2"+strings.Repeat("x", 100))
	served(r, p, "b", "k3")
	served(m.NewRecorder("10.0.0.2:5"), p, "a", "k4")
	op := <-mon.Requests()
	require.False(t, op.Time.IsZero())
	require.Equal(t, "rpc set db=a key=\"k1\" in=0 out=0 time=0.000000 wait=0.000000 peer=10.0.0.1:5", op.String())
	require.Equal(t, `"k\n2`+strings.Repeat("x", 61)+`"...103`, (<-mon.Requests()).Key)
	require.Empty(t, mon.Requests())

	for range monitorRoom + 7 {
		served(r, p, "a", "k")
	}
	require.EqualValues(t, 7, mon.Missed())
	require.Zero(t, mon.Missed())
	mon.Close()
	mon.Close() // nothing more
	require.False(t, r.Wanted())
	require.Len(t, mon.Requests(), monitorRoom)
}

func TestEveryTenthRequest(t *testing.T) {
	m, p := New(Options{}), NewProtocol("rpc", "get", "set")
	one, other := m.NewMonitor(Filter{Every: 10}), m.NewMonitor(Filter{Command: "get"})
	defer other.Close()
	r := m.NewRecorder("")
	for range 35 {
		served(r, p, "a", "k")
	}
	require.Len(t, one.Requests(), 3)
	require.Empty(t, other.Requests())
	one.Close()
	require.Equal(t, 1, m.Watches())
}

// A still meter shows requests, and counts none.
func TestStillMeter(t *testing.T) {
	m, p := New(Options{Still: true}), NewProtocol("p", "get", "set")
	r := m.NewRecorder("")
	defer m.NewMonitor(Filter{}).Close()
	r.Arrived()
	r.Note(p, 1, true)
	r.Restart()
	r.Leave()
	r.Long(p, 0)
	r.Done()
	require.Zero(t, r.began, "the clock was not looked at")
	for _, c := range p.Commands() {
		require.Zero(t, c.Count)
	}
}

func TestHotKeysAreCounted(t *testing.T) {
	m, p := New(Options{Still: true}), NewProtocol("rpc", "get", "set")
	h := m.NewHot(Filter{})
	r := m.NewRecorder("")
	served(r, p, "a", "x", "y", "x", "")
	served(r, p, "b", "x")
	served(r, p, "", "a lock")
	r.Keys(Detail{Protocol: p, Database: "a"}, slices.Values([][]byte{[]byte("x"), []byte("z")}))
	r.Describe(Detail{Protocol: p, Database: "a", Key: []byte("x"), Bulk: true})
	h.Close()
	served(r, p, "a", "y")
	keys, seen, left := h.Top(2)
	require.Equal(t, []HotKey{{Database: "a", Key: "x", Count: 3}, {Database: "a", Key: "y", Count: 1}}, keys)
	require.EqualValues(t, 6, seen)
	require.Zero(t, left)
}

// Keys that come by the thousand do not push the frequent ones out, and no count is too low or more
// wrong than it says.
func TestHotKeysOfManyKeys(t *testing.T) {
	m, p := New(Options{Still: true}), NewProtocol("rpc", "get", "set")
	h := m.NewHot(Filter{})
	defer h.Close()
	r := m.NewRecorder("")
	rnd := rand.New(rand.NewPCG(1, 2))
	real := map[string]uint64{}
	const requests = 50_000
	for range requests {
		key := fmt.Sprint("rare", rnd.IntN(50_000))
		if n := rnd.IntN(20); n < 5 {
			key = fmt.Sprint("hot", n)
		}
		real[key]++
		served(r, p, "a", key)
	}
	keys, seen, _ := h.Top(hotKeys)
	require.EqualValues(t, requests, seen)
	require.Len(t, keys, hotKeys)
	for i, k := range keys {
		if k.Count < real[k.Key] || k.Count-k.Over > real[k.Key] || k.Over > requests/hotKeys {
			t.Fatalf("%+v, and there were %d", k, real[k.Key])
		}
		if i < 5 {
			require.True(t, strings.HasPrefix(k.Key, "hot"), k.Key)
		}
	}
	require.Len(t, h.places, hotKeys)
}

func TestLongHotKeys(t *testing.T) {
	m, p := New(Options{Still: true}), NewProtocol("rpc", "get", "set")
	h := m.NewHot(Filter{Prefix: "l"})
	defer h.Close()
	served(m.NewRecorder(""), p, "a", "l"+strings.Repeat("x", 1000), "short")
	keys, _, _ := h.Top(5)
	require.Equal(t, []HotKey{{Database: "a", Key: "l" + strings.Repeat("x", longestHot-1), Count: 1, Long: true}}, keys)
}

// Many connections at once: every key is counted or left out.
func TestHotKeysOfManyConnections(t *testing.T) {
	m, p := New(Options{Still: true}), NewProtocol("rpc", "get", "set")
	h := m.NewHot(Filter{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			r := m.NewRecorder("")
			for range 1000 {
				served(r, p, "a", "k")
			}
		})
	}
	all.Wait()
	h.Close()
	_, seen, left := h.Top(1)
	require.EqualValues(t, 4000, seen+left)
}

// BenchmarkWatched is what a request costs that a monitor leaves out, and one that is counted.
func BenchmarkWatched(b *testing.B) {
	m, p := New(Options{Still: true}), NewProtocol("p", "get", "set")
	defer m.NewMonitor(Filter{Command: "get"}).Close()
	defer m.NewHot(Filter{}).Close()
	r, key := m.NewRecorder(""), []byte("key")
	for b.Loop() {
		r.Describe(Detail{Protocol: p, Command: 1, Database: "a", Key: key})
	}
}
