package sequence

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/services/internal/servicetest"
	"gotycoon/services/internal/webport"
)

// clock is a clock that tests set.
type clock struct{ seconds atomic.Int64 }

func newClock(at int64) *clock {
	c := &clock{}
	c.seconds.Store(at)
	return c
}

func (c *clock) now() time.Time { return time.Unix(c.seconds.Load(), 0) }

func TestNumbersAreTheOriginalsBitForBit(t *testing.T) {
	require.Equal(t, "aR2011o_cWG00002", string(appendNumber(nil, 2, 1, moment(1492962986<<serialBits|2))))
	largest := moment(1<<34-1)<<serialBits | serialMask
	require.Equal(t, "aR___f__________", string(appendNumber(nil, MaxReserve, MaxServerNo, largest)))
}

func TestExplainedNumbersAreWhatWasFetched(t *testing.T) {
	for range 1000 {
		m := moment(rand.Uint64())
		reserve, server := rand.IntN(MaxReserve+1), rand.IntN(MaxServerNo+1)
		text, err := appendExplained(nil, appendNumber(nil, reserve, server, m), time.UTC)
		require.NoError(t, err)
		at := time.Unix(int64(m.second()), 0).UTC().Format(time.DateTime)
		want := fmt.Sprintf("reserve: %d  server_no: %d  secondstamp: %d (%s)  serial_no: %d\n", reserve, server, m.second(), at, m.serial())
		require.Equal(t, want, string(text))
	}
}

// ledger requires that moments grow from one to the next, across every restart.
type ledger struct {
	t    *testing.T
	last moment
}

func (l *ledger) take(first moment, n uint64) {
	require.Greater(l.t, first, l.last)
	l.last = first + moment(n) - 1
}

// end is the clean end of a sequence.
func end(s *sequence) error {
	var owed db.Pending
	return errors.Join(s.close(&owed), owed.Wait())
}

func TestNumbersGrowWhateverTheClockDoes(t *testing.T) {
	dir := t.TempDir()
	r := &records{Records: webport.Records{DB: servicetest.OpenDB(t, dir)}, serverNo: 7}
	c := newClock(1_800_000_000)
	l := &ledger{t: t}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		s, err := openSequence("", r, nil, c.now)
		require.NoError(t, err)
		for range rnd.IntN(5) {
			n := 1 + rnd.Uint64N(1000)
			if rnd.IntN(20) == 0 {
				n = serialMask // overflows the serial now and then
			}
			first, err := s.fetch(n)
			require.NoError(t, err)
			l.take(first, n)
			c.seconds.Add(int64(rnd.IntN(7)) - 3)
		}
		if rnd.IntN(2) == 0 {
			s.renewals.Wait() // the process ends without closing
		} else {
			require.NoError(t, end(s))
		}
	}
	require.Less(t, int64(l.last.second()), int64(1_800_000_000+300*10))
}

// A number is given out only after its bound is durable: without that, nothing is.
func TestNothingIsGivenOutWithoutADurableBound(t *testing.T) {
	c := newClock(1_800_000_000)
	d := servicetest.OpenDB(t, t.TempDir())
	s, err := openSequence("", &records{Records: webport.Records{DB: d}}, nil, c.now)
	require.NoError(t, err)
	_, err = s.fetch(1)
	require.NoError(t, err)
	bound, err := s.records.bound("/0", "")
	require.NoError(t, err)
	require.Greater(t, bound, uint64(1_800_000_000))
	require.NoError(t, end(s))
	after, err := s.records.bound("/0", "")
	require.NoError(t, err)
	require.Equal(t, uint64(1_800_000_001), after, "a clean stop does not leave the sequence ahead of the clock")
}

func TestADamagedBoundStopsTheSequence(t *testing.T) {
	d := servicetest.OpenDB(t, t.TempDir())
	r := &records{Records: webport.Records{DB: d}}
	require.NoError(t, d.Set(nil, r.key("/0", "x"), []byte("12a"), 1000))
	_, err := openSequence("x", r, nil, time.Now)
	require.ErrorContains(t, err, `sequence "x" is damaged`)
}

func TestConcurrentFetchesGetDifferentNumbersInOrder(t *testing.T) {
	const workers, rounds = 16, 400
	addr := start(t, Options{Reserve: 3, ServerNo: 4095})
	var all [workers][]string
	var wait sync.WaitGroup
	for w := range workers {
		c := servicetest.NewClient(t, addr)
		wait.Go(func() {
			for i := range rounds {
				count := 1 + i%3
				status, body := c.Get(fmt.Sprintf("/fetch?count=%d&name=orders", count))
				if status != 200 || len(body) != count*(numberSize+1) {
					panic(errors.New(body))
				}
				all[w] = append(all[w], strings.Fields(body)...)
			}
		})
	}
	wait.Wait()
	seen := map[string]bool{}
	for w := range workers {
		require.True(t, slices.IsSortedFunc(all[w], byValue), "connection %d", w)
		for _, n := range all[w] {
			require.False(t, seen[n], n)
			seen[n] = true
		}
	}
}

// byValue compares numbers by the alphabet's order, which is not that of the bytes.
func byValue(a, b string) int {
	for i := range a {
		if a[i] != b[i] {
			return digit(a[i]) - digit(b[i])
		}
	}
	return 0
}

func TestNamedSequencesAreIndependent(t *testing.T) {
	c := newClock(1_800_000_000)
	client := servicetest.NewClient(t, start(t, Options{Now: c.now}))
	_, a1 := client.Get("/fetch?name=a")
	_, b1 := client.Get("/fetch?name=b")
	_, a2 := client.Get("/fetch?name=a")
	require.Equal(t, a1, b1)
	require.NotEqual(t, a1, a2)
}

func TestFetchRefusesBadParameters(t *testing.T) {
	c := servicetest.NewClient(t, start(t, Options{}))
	for path, want := range map[string]int{
		"/fetch?count=0": 400, "/fetch?count=-1": 400, "/fetch?count=100001": 400, "/fetch?count=x": 400, "/fetch?count=": 400,
		"/fetch?name=" + strings.Repeat("n", 256): 400, "/fetch?count": 404, "/fetch?counts=1": 404, "/fetch?count=100000": 200,
	} {
		status, body := c.Get(path)
		require.Equal(t, want, status, path)
		if want == 200 {
			require.Len(t, body, 100_000*17)
		}
	}
}

func FuzzExplain(f *testing.F) {
	for _, seed := range []string{"aR2011o_cWG00002", "00", "9901020304", "__1111111111111111111111111111", "aR"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, number []byte) {
		text, err := appendExplained(nil, number, time.UTC)
		require.Equal(t, err != nil, text == nil)
	})
}
