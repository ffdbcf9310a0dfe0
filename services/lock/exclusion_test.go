package lock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tenure is a time for which a client had a lock for certain.
type tenure struct {
	token    uint64
	from, to time.Duration // received GRANTED; sent release, or closed
}

// witness collects tenures, and is a resource that checks tokens as one should.
type witness struct {
	start time.Time

	mu      sync.Mutex
	tenures map[string][]tenure
	highest map[string]uint64 // token of the latest write
	stale   int               // writes that were refused
	lapsed  int               // locks that expired under their holder
}

func (w *witness) now() time.Duration { return time.Since(w.start) }

// write is refused for a token lower than one that has been seen.
func (w *witness) write(key string, token uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if token < w.highest[key] {
		w.stale++
		return
	}
	w.highest[key] = token
}

func (w *witness) saw(key string, had tenure) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tenures[key] = append(w.tenures[key], had)
}

// client locks, pauses and releases, or loses its connection, until the time is over.
func (w *witness) client(t *testing.T, addr string, rnd *rand.Rand, until time.Duration) {
	p := dial(t, addr)
	for w.now() < until {
		key := "k" + strconv.Itoa(rnd.IntN(3))
		p.send("lock-fenced %s 1 5 3", key)
		words := strings.Fields(p.line())
		if words[0] == wordTimeout {
			continue
		}
		if len(words) != 6 {
			t.Errorf("%v", words)
			return
		}
		token, _ := strconv.ParseUint(words[5], 10, 64)
		had := tenure{token: token, from: w.now()}
		pause := time.Duration(rnd.IntN(2000)) * time.Microsecond
		if rnd.IntN(60) == 0 {
			pause = 3100 * time.Millisecond // it expires
		}
		<-time.After(pause)
		w.write(key, token)
		if p = w.leave(t, p, addr, key, had, rnd); p == nil {
			return
		}
	}
	p.Close()
}

// leave gives the lock back in one way or another, and returns the connection to go on with.
func (w *witness) leave(t *testing.T, p *peer, addr, key string, had tenure, rnd *rand.Rand) *peer {
	had.to = w.now()
	if rnd.IntN(10) == 0 {
		p.Close()
		if had.to-had.from < 500*time.Millisecond { // otherwise it may have expired
			w.saw(key, had)
		}
		return dial(t, addr)
	}
	p.send("release %s\nstatus end", key)
	var got []string
	for len(got) == 0 || got[len(got)-1] != wordStatus {
		got = append(got, strings.Fields(p.line())[0])
	}
	switch {
	case slices.Equal(got, []string{wordReleased, wordStatus}):
		w.saw(key, had)
	case slices.Equal(got, []string{wordReleased, wordExpired, wordNotReleased, wordStatus}):
		w.mu.Lock()
		w.lapsed++
		w.mu.Unlock()
	default:
		t.Errorf("%v", got)
		return nil
	}
	return p
}

// No two clients have a lock at the same time, and whoever has it later has a greater token.
func TestMutualExclusion(t *testing.T) {
	t.Parallel()
	inLoopsAndAlone(t, func(t *testing.T, start func(testing.TB, Options) (*Server, string)) {
		length := 8 * time.Second
		if big() {
			length = 2 * time.Minute
		}
		s, addr := start(t, Options{Fences: &fakeFences{}})
		w := &witness{start: time.Now(), tenures: map[string][]tenure{}, highest: map[string]uint64{}}
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		var clients sync.WaitGroup
		for i := range 16 {
			clients.Go(func() { w.client(t, addr, rand.New(rand.NewPCG(seed, uint64(i))), length) })
		}
		clients.Wait()
		n := 0
		for key, list := range w.tenures {
			slices.SortFunc(list, func(a, b tenure) int { return int(a.token) - int(b.token) })
			for i := 1; i < len(list); i++ {
				require.Greater(t, list[i].token, list[i-1].token, key)
				require.GreaterOrEqual(t, list[i].from, list[i-1].to, "%s: %+v and %+v", key, list[i-1], list[i])
			}
			n += len(list)
		}
		t.Logf("%d tenures, %d expiries, %d writes refused", n, w.lapsed, w.stale)
		require.Greater(t, n, 50)
		require.Positive(t, w.lapsed)
		require.Eventually(t, func() bool { return s.Stats().Keys == 0 }, waitLimit, time.Millisecond)
	})
}

// Among equal requests the order of arrival decides, also over many connections.
func TestFairness(t *testing.T) {
	t.Parallel()
	inLoopsAndAlone(t, func(t *testing.T, start func(testing.TB, Options) (*Server, string)) {
		const waiters = 200
		_, addr := start(t, Options{})
		a := dial(t, addr)
		require.Equal(t, "GRANTED 1 0 k 120", a.call("lock k"))
		var queue []*peer
		for i := range waiters {
			p := dial(t, addr)
			require.Equal(t, fmt.Sprintf("STATUS 1 %d k", i+1), p.call("lock k\nstatus k"))
			queue = append(queue, p)
		}
		a.send("release k")
		for i, p := range queue {
			require.Equal(t, fmt.Sprintf("GRANTED 1 %d k 120", waiters-1-i), p.line())
			if i%7 == 0 {
				p.Close()
			} else {
				p.send("release k")
			}
		}
		a.line()
		require.Eventually(t, func() bool { return a.call("status k") == "STATUS 0 0 k" }, waitLimit, time.Millisecond)
	})
}
