package db

import (
	"encoding/binary"
	"gotycoon/db/record"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBigFreeze measures what it costs writers that a database of five million records is frozen
// and read. Each write is timed alone, at a rate that leaves the processors room: what is compared
// is how long writers wait.
func TestBigFreeze(t *testing.T) {
	if os.Getenv("GOTYCOON_BIG") == "" {
		t.Skip("takes a minute; set GOTYCOON_BIG to run it")
	}
	const records = 5_000_000
	for _, expr := range []string{":", "*", "%", "b.kct"} {
		t.Run(expr, func(t *testing.T) {
			if expr[0] == 'b' {
				expr = filepath.Join(t.TempDir(), expr)
			}
			d := mustOpen(t, Options{}, expr).DB(0)
			recs := make([]Record, 1000)
			for i := range recs {
				recs[i] = Record{Key: make([]byte, 16), Value: make([]byte, 84), XT: record.Never}
			}
			for i := 0; i < records; i += len(recs) {
				for j := range recs {
					bigKey(recs[j].Key, uint64(i+j))
				}
				_, err := d.SetBulk(nil, recs, false)
				require.NoError(t, err)
			}
			alone := bigWriters(d, records, func() { time.Sleep(2 * time.Second) }) //lint:sleep how long to measure
			var took, stop time.Duration
			beside := bigWriters(d, records, func() {
				begin := time.Now()
				f, err := d.Freeze()
				require.NoError(t, err)
				stop = time.Since(begin)
				begin = time.Now()
				n := int64(0)
				require.NoError(t, f.Scan(func(_, _ []byte) error { n++; return nil }))
				took = time.Since(begin)
				require.Equal(t, f.Count(), n)
				require.NoError(t, f.Close())
			})
			t.Logf("freeze %v, scan %v: %.2f million records a second", stop, took, records/1e6/took.Seconds())
			t.Logf("writes alone %v; beside the scan %v", alone, beside)
		})
	}
}

func bigKey(key []byte, i uint64) {
	binary.BigEndian.PutUint64(key, i*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(key[8:], i)
}

// bigLatency is the percentiles of some writes.
type bigLatency struct {
	n                   int
	p50, p99, p999, max time.Duration
}

// bigWriters writes from several goroutines until work returns.
func bigWriters(d *DB, records uint64, work func()) bigLatency {
	var stop atomic.Bool
	var all sync.WaitGroup
	times := make([][]time.Duration, 4)
	for i := range times {
		all.Go(func() {
			key, value := make([]byte, 16), make([]byte, 84)
			for !stop.Load() {
				bigKey(key, rand.Uint64N(records))
				begin := time.Now()
				_ = d.Set(nil, key, value, record.Never)
				times[i] = append(times[i], time.Since(begin))
				time.Sleep(100 * time.Microsecond) //lint:sleep the rate of the writes
			}
		})
	}
	work()
	stop.Store(true)
	all.Wait()
	sum := slices.Concat(times...)
	slices.Sort(sum)
	at := func(share float64) time.Duration { return sum[int(share*float64(len(sum)-1))] }
	return bigLatency{len(sum), at(.5), at(.99), at(.999), at(1)}
}
