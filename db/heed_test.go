package db

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gotycoon/db/checksum"
	"gotycoon/db/dberr"
	"gotycoon/db/keymatch"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

var errEnough = errors.New("enough")

// looks is a store that notes the most records that one look at a store has visited.
type looks struct {
	store.Store
	most int
	n    int // looks
}

// Scan implements store.Store.
func (s *looks) Scan(from store.Start, visit func(key, value []byte) bool) error {
	n := 0
	s.n++
	defer func() { s.most = max(s.most, n) }()
	return s.Store.Scan(from, func(key, value []byte) bool {
		n++
		return visit(key, value)
	})
}

// A store in memory keeps writers waiting while somebody looks at it: no look may be long, however
// much is asked for.
func TestVacuumLetsWritersIn(t *testing.T) {
	for _, expr := range []string{"%", "*", "+", "v.kct"} {
		for _, step := range []int64{0, 2, 5_000, 1_000_000_000} {
			t.Run(fmt.Sprint(expr, step), func(t *testing.T) {
				path := expr
				if strings.HasSuffix(expr, ".kct") {
					path = filepath.Join(t.TempDir(), expr)
				}
				now := newClock()
				d := mustOpen(t, Options{Now: now.now}, path).DB(0)
				alone(d)
				var recs []Record
				for i := range 20_000 {
					recs = append(recs, Record{Key: fmt.Appendf(nil, "%06d", i), Value: []byte("v"), XT: record.XT(1 + 100*(i%2))})
				}
				_, err := d.SetBulk(nil, recs, false)
				require.NoError(t, err)
				now.advance(10)
				watched := &looks{Store: d.store}
				d.store = watched
				require.NoError(t, d.Vacuum(nil, step)) // from where the collector is, to the end at most
				require.NoError(t, d.Vacuum(nil, step))
				require.LessOrEqual(t, watched.most, maxCollect+1)
				n, err := d.Count(nil)
				require.NoError(t, err)
				if step == 0 || step >= 20_000 {
					require.EqualValues(t, 10_000, n)
				} else {
					require.GreaterOrEqual(t, n, 20_000-2*step)
				}
			})
		}
	}
}

func TestVacuumEndsWithItsClient(t *testing.T) {
	now := newClock()
	d := mustOpen(t, Options{Now: now.now}, "%").DB(0)
	for i := range 5_000 {
		require.NoError(t, d.Set(nil, fmt.Appendf(nil, "%06d", i), nil, 1))
	}
	now.advance(10)
	asked := 0
	for _, step := range []int64{0, 1_000_000} {
		require.ErrorIs(t, d.Vacuum(func() error {
			if asked++; asked%10 == 0 {
				return errEnough
			}
			return nil
		}, step), errEnough)
	}
	require.Equal(t, 20, asked)
	require.NoError(t, d.Vacuum(nil, 0), "and leaves everything as it should be")
	n, err := d.Count(nil)
	require.NoError(t, err)
	require.Zero(t, n)
}

// pulse is a Heed that ends the work after a time, and notes the longest time of its processor in
// which it was not asked.
type pulse struct {
	end           time.Time
	last, longest time.Duration
}

func newPulse(d time.Duration) *pulse { return &pulse{end: time.Now().Add(d), last: worked()} }

// worked returns the time for which the thread has had a processor: others may have it meanwhile.
func worked() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func (p *pulse) heed() error {
	now := worked()
	p.longest, p.last = max(p.longest, now-p.last), now
	if time.Now().After(p.end) {
		return errEnough
	}
	return nil
}

// expensiveSearches are endless: each repeats work that takes long, until its Heed ends it.
func expensiveSearches(t testing.TB) map[string]func(Heed) error {
	d := mustOpen(t, Options{}, "%").DB(0)
	long := bytes.Repeat([]byte("a"), 4<<20)
	for i := range 20 {
		require.NoError(t, d.Set(nil, fmt.Appendf(bytes.Clone(long), "%d", i), nil, record.Never))
		require.NoError(t, d.Set(nil, fmt.Appendf(long[:60_000:60_000], "%d", i), nil, record.Never))
	}
	regex := func(pattern string) func(Heed) error {
		return func(h Heed) error {
			for {
				if _, err := keymatch.MatchRegex(d, h, nil, pattern, -1, nil); err != nil {
					return err
				}
			}
		}
	}
	similar := func(size int, limit int64, utf bool) func(Heed) error {
		return func(h Heed) error {
			for {
				if _, err := keymatch.MatchSimilar(d, h, nil, bytes.Repeat([]byte("b"), size), limit, utf, -1, nil); err != nil {
					return err
				}
			}
		}
	}
	searches := map[string]func(Heed) error{
		"nested":     regex(`(a*)*\1b`),
		"groups":     regex(`((a+)(a+)\3\2)+x`),
		"run":        regex(`a*b\<`),
		"back":       regex(`(a*)\1\1x`),
		"linear":     regex(`(a?){500}x`),
		"plain":      regex(`[ab]*[ac]*x`),
		"similar":    similar(60_000, 20_000, false),
		"utf":        similar(60_000, 20_000, true),
		"wide":       similar(4<<20, 200, false),
		"everything": similar(100, 8<<20, true),
		"checksum": func(h Heed) error {
			for {
				if _, err := checksum.Sum(d, nil, []checksum.Range{{}}, checksum.Options{Heed: h}); err != nil {
					return err
				}
			}
		},
		"prefix": func(h Heed) error {
			for {
				if _, err := keymatch.MatchPrefix(d, h, nil, []byte("b"), -1, nil); err != nil {
					return err
				}
				if _, err := keymatch.MatchPrefix(d, h, nil, long, -1, nil); err != nil {
					return err
				}
			}
		},
	}
	maps.Copy(searches, longWays(t))
	return searches
}

// longWays are those of expensiveSearches that pass over many records which nobody sees.
func longWays(t testing.TB) map[string]func(Heed) error {
	const records = 20_000
	now := newClock()
	fill := func(path string, xt record.XT, then func(d *DB, key []byte) error) *DB {
		d := mustOpen(t, Options{Now: now.now}, path).DB(0)
		d.Watch(WatchOptions{Claims: true})
		for i := range records {
			key := fmt.Appendf(nil, "q %06d", i)
			require.NoError(t, d.Set(nil, key, []byte("v"), xt))
			require.NoError(t, then(d, key))
		}
		return d
	}
	again := func(do func(Heed) error) func(Heed) error {
		return func(h Heed) error {
			for {
				if err := do(h); err != nil && !errors.Is(err, dberr.ErrNoRecord) {
					return err
				}
			}
		}
	}
	claim := func(d *DB) func(Heed) error {
		return again(func(h Heed) error { _, err := d.Claim(h, nil, []byte("q "), nil); return err })
	}
	jump := func(d *DB) func(Heed) error {
		return again(func(h Heed) error { c := d.NewCursor(); c.Heed = h; return c.Jump(nil) })
	}
	claimed := fill("%", record.Never, func(d *DB, key []byte) error { _, err := d.claim(nil, key); return err })
	removed := fill(filepath.Join(t.TempDir(), "v.kct"), record.Never, func(d *DB, key []byte) error { return d.Remove(nil, key) })
	expired := fill("%", 1, func(*DB, []byte) error { return nil })
	now.advance(10)
	return map[string]func(Heed) error{
		"claim past claimed": claim(claimed), "jump past claimed": jump(claimed), "jump past removed": jump(removed),
		"claim past expired": claim(expired), "vacuum": again(func(h Heed) error { return removed.Vacuum(h, 0) }),
	}
}

// Every search asks again and again, and ends when the answer is to end.
func TestExpensiveSearchesEnd(t *testing.T) {
	for name, search := range expensiveSearches(t) {
		t.Run(name, func(t *testing.T) {
			asked := 0
			require.ErrorIs(t, search(func() error {
				if asked++; asked == 5 {
					return errEnough
				}
				return nil
			}), errEnough)
			require.Equal(t, 5, asked, "it goes on after the answer")
		})
	}
}

// BenchmarkQuestions reports the longest time of its processor, in milliseconds, in which a search
// does not ask. Aim: 10.
func BenchmarkQuestions(b *testing.B) {
	for name, search := range expensiveSearches(b) {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			p := newPulse(time.Second)
			require.ErrorIs(b, search(p.heed), errEnough)
			b.ReportMetric(float64(p.longest)/float64(time.Millisecond), "ms-unasked")
		})
	}
}

func TestCursorsEndOnALongWay(t *testing.T) {
	now := newClock()
	d := mustOpen(t, Options{Now: now.now}, "%").DB(0)
	for i := range 1_000 {
		require.NoError(t, d.Set(nil, fmt.Appendf(nil, "%06d", i), nil, 1))
	}
	require.NoError(t, d.Set(nil, []byte("live"), nil, record.Never))
	c := d.NewCursor()
	require.NoError(t, c.Jump(nil))
	now.advance(10)
	c.Heed = func() error { return errEnough }
	_, err := c.GetKey(nil, false)
	require.ErrorIs(t, err, errEnough)
	c.Heed = nil
	key, err := c.GetKey(nil, false)
	require.NoError(t, err)
	require.Equal(t, "live", string(key))
}

// A file from which everything was removed has the removed entries until the next checkpoint.
// Updates do not pass over them each time.
func TestTheCollectorLeavesAnEmptyFileAlone(t *testing.T) {
	d := mustOpen(t, Options{}, filepath.Join(t.TempDir(), "v.kct")).DB(0)
	watched := &looks{Store: d.store}
	d.store = watched
	for i := range 1_000 {
		require.NoError(t, d.Set(nil, fmt.Appendf(nil, "%06d", i), nil, record.Never))
		require.NoError(t, d.Remove(nil, fmt.Appendf(nil, "%06d", i)))
	}
	d.sweeper.mu.Lock() // or the collector may be at it
	defer d.sweeper.mu.Unlock()
	require.LessOrEqual(t, watched.n, 10)
}
