package db

import (
	"fmt"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIncrementsAddUp increments a few numbers from many goroutines while checkpoints run.
func TestIncrementsAddUp(t *testing.T) {
	for _, expr := range []string{":", "%", "*", "i.kct"} {
		t.Run(expr, func(t *testing.T) {
			if expr[0] == 'i' {
				expr = filepath.Join(t.TempDir(), expr)
			}
			c := mustOpen(t, Options{CheckpointSize: 4 << 10}, expr)
			const workers, each = 8, 200
			var all sync.WaitGroup
			for w := range workers {
				all.Go(func() {
					for i := range each {
						key := fmt.Appendf(nil, "n%d", (i+w)%5)
						if _, err := c.DB(0).Increment(nil, key, 1, 0, record.Never); err != nil {
							t.Errorf("increment: %v", err)
							return
						}
					}
				})
			}
			all.Wait()
			total := int64(0)
			for i := range 5 {
				n, err := c.DB(0).Increment(nil, fmt.Appendf(nil, "n%d", i), 0, 0, record.Never)
				require.NoError(t, err)
				total += n
			}
			require.Equal(t, int64(workers*each), total)
		})
	}
}

// TestAtomicBulksAreSeenWhole writes all keys with one value at a time; an atomic read sees one
// value.
func TestAtomicBulksAreSeenWhole(t *testing.T) {
	for _, expr := range []string{":", "%", "a.kct"} {
		t.Run(expr, func(t *testing.T) {
			if expr[0] == 'a' {
				expr = filepath.Join(t.TempDir(), expr)
			}
			c := mustOpen(t, Options{CheckpointSize: 4 << 10}, expr)
			d := c.DB(0)
			var keys [][]byte
			for i := range 20 {
				keys = append(keys, fmt.Appendf(nil, "k%d", i))
			}
			var done atomic.Bool
			var writer sync.WaitGroup
			writer.Go(func() {
				for round := range 300 {
					recs := make([]Record, len(keys))
					for i, key := range keys {
						recs[i] = Record{Key: key, Value: fmt.Append(nil, round), XT: record.Never}
					}
					if _, err := d.SetBulk(nil, recs, true); err != nil {
						t.Errorf("bulk: %v", err)
					}
				}
				done.Store(true)
			})
			for !done.Load() {
				seen := map[string]int{}
				require.NoError(t, d.GetBulk(nil, keys, true, func(_ int, value []byte, _ int64) { seen[string(value)]++ }))
				require.LessOrEqual(t, len(seen), 1)
			}
			writer.Wait()
		})
	}
}

// TestCountIsExact compares the count with a walk while writers are at rest, after concurrent
// writes of all kinds.
func TestCountIsExact(t *testing.T) {
	c := mustOpen(t, Options{CheckpointSize: 16 << 10}, filepath.Join(t.TempDir(), "c.kct"))
	d := c.DB(0)
	for round := range 5 {
		var all sync.WaitGroup
		for w := range 4 {
			all.Go(func() {
				for i := range 300 {
					key := fmt.Appendf(nil, "%d", (i*7+w*13+round)%500)
					var err error
					switch i % 5 {
					case 0:
						_ = d.Remove(nil, key) // may not be there
					case 1:
						_, err = d.SetBulk(nil, []Record{{Key: key, XT: record.Never}, {Key: key, XT: record.Never}}, i%2 == 0)
					case 2:
						_, err = d.Count(nil)
					default:
						err = d.Set(nil, key, []byte("value"), record.Never)
					}
					if err != nil {
						t.Errorf("write: %v", err)
					}
				}
			})
		}
		all.Wait()
		contents(t, d)
	}
}

func TestClearComesBetweenReadAndWrite(t *testing.T) {
	c := mustOpen(t, Options{}, ":")
	d := c.DB(0)
	var all sync.WaitGroup
	all.Go(func() {
		for range 500 {
			if err := d.Clear(nil); err != nil {
				t.Errorf("clear: %v", err)
			}
		}
	})
	all.Go(func() {
		last := int64(0)
		for range 2000 {
			n, err := d.Increment(nil, []byte("n"), 1, 0, record.Never)
			if err != nil || (n != last+1 && n != 1) {
				t.Errorf("increment gave %d after %d (%v)", n, last, err)
				return
			}
			last = n
		}
	})
	all.Wait()
	_, err := d.Increment(nil, []byte("absent"), 1, math.MinInt64, record.Never)
	require.ErrorIs(t, err, dberr.ErrLogic)
}
