package engine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/history"
	"gotycoon/db/engine/pg/pgtest"
)

// postgres is the server of this package.
var postgres pgtest.Shared

func TestMain(m *testing.M) { os.Exit(postgres.Main(m)) }

// TestFaults has faults happen under load, of each kind at least one in an act.
func TestFaults(t *testing.T) {
	rounds, lasts, increments := 0, []int{50, 200}, 2_000
	if text, long := os.LookupEnv("GOTYCOON_ENGINE_FAULTS"); long {
		var err error
		rounds, err = strconv.Atoi(text)
		require.NoError(t, err, "GOTYCOON_ENGINE_FAULTS is a number of faults")
		lasts, increments = []int{50, 200, 700, 1500, 3000, 5000}, 10_000
	}
	n := uint64(time.Now().UnixNano())
	if text, ok := os.LookupEnv("GOTYCOON_ENGINE_SEED"); ok {
		var err error
		n, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("GOTYCOON_ENGINE_SEED=%d", n)
	s := newStage(t, 3, rand.New(rand.NewPCG(n, 1)))
	s.settle(increments)
	total, did, slowest := &tally{}, map[string]int{}, map[string]time.Duration{}
	begun := time.Now()
	for act := 0; !t.Failed() && (act == 0 || count(did) < rounds); act++ {
		p := s.start(fmt.Sprintf("act%d", act))
		func() {
			defer p.wg.Wait()
			defer p.stop()
			for _, f := range s.deck() {
				s.round(f, lasts, did, slowest)
			}
		}()
		p.judge(t, total)
		lost := 0
		for _, v := range s.servers {
			lost += v.links[0].swallowed() + v.links[1].swallowed()
		}
		t.Logf("act %d after %v: %d faults, %v; %d promotions, %d answers of commits swallowed; faults %v; longest until all served again %v",
			act, time.Since(begun).Round(time.Second), count(did), total, s.terms, lost, did, slowest)
	}
}

func count(did map[string]int) (n int) {
	for _, times := range did {
		n += times
	}
	return n
}

// settle makes increments of a few keys at all servers, while links swallow answers of commits. All
// are answered, each with a number of its own, and the numbers are exact in the end.
func (s *stage) settle(increments int) {
	s.t.Helper()
	for _, v := range s.servers {
		for _, l := range v.links {
			l.set(condition{swallow: 20}, true)
		}
	}
	const keys, workers = 10, 60
	var begun atomic.Int64
	var mu sync.Mutex
	seen, failed := map[string]bool{}, []string{}
	var wg sync.WaitGroup
	began := time.Now()
	for i := range workers {
		wg.Go(func() {
			w, err := history.DialHTTP(s.servers[i%len(s.servers)].ports.Main, soon)
			if err != nil {
				s.t.Error(err)
				return
			}
			defer w.Close()
			for n := begun.Add(1); n <= int64(increments); n = begun.Add(1) {
				key := fmt.Sprintf("settle-%d", n%keys)
				r := w.Ask(history.Call{Verb: history.Incr, Key: key, By: 1})
				mu.Lock()
				if name := key + "=" + r.Value; r.Certainty != history.Done || seen[name] {
					failed = append(failed, fmt.Sprint(name, r))
				} else {
					seen[name] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	lost := 0
	for _, v := range s.servers {
		for _, l := range v.links {
			lost += l.swallowed()
			l.set(condition{}, false)
		}
	}
	require.Empty(s.t, failed, "increments that were not answered, or with a number that another one has got")
	require.Positive(s.t, lost)
	values := map[string]string{}
	for i := range keys {
		values[fmt.Sprintf("settle-%d", i)] = ""
	}
	s.read(s.servers[0], values)
	for key, value := range values {
		require.Equal(s.t, strconv.Itoa(increments/keys), value, key)
	}
	s.t.Logf("%d increments in %v, of which %d answers of commits were swallowed", increments, time.Since(began).Round(time.Millisecond), lost)
}
