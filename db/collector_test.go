package db

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// passes runs f, which must not wait for what the test keeps from going on.
func passes(t *testing.T, f func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "it waits")
	}
}

// parked is a store in which every scan waits.
type parked struct {
	store.Store
	scans chan struct{} // told of the first one
	goOn  chan struct{} // closed to let them go on
}

// Scan implements store.Store.
func (s *parked) Scan(from store.Start, visit func(key, value []byte) bool) error {
	select {
	case s.scans <- struct{}{}:
	default:
	}
	<-s.goOn
	return s.Store.Scan(from, visit)
}

// use sets and gets a record as often as it takes until the collector comes.
func use(d *DB, key string) error {
	for range 4 * sweepAt / readScore {
		if err := d.Set(nil, []byte(key), []byte("v"), record.Never); err != nil {
			return err
		}
		if _, _, err := d.Get(nil, nil, []byte(key)); err != nil && !errors.Is(err, dberr.ErrNoRecord) {
			return err // over the limit it may be gone
		}
	}
	return nil
}

// In a file nobody waits for a step of the collector, which may have to pass over a million removed
// entries, wait for the disk, or count.
func TestClientsDoNotCollectInFiles(t *testing.T) {
	now := newClock()
	c := mustOpen(t, Options{Now: now.now}, filepath.Join(t.TempDir(), "v.kct#ktcapcnt=100"))
	d := c.DB(0)
	var recs []Record
	for i := range 1000 {
		recs = append(recs, Record{Key: fmt.Appendf(nil, "%06d", i), Value: []byte("v"), XT: record.XT(1 + 100*(i%2))})
	}
	d.sweeper.mu.Lock() // nothing is collected yet
	_, err := d.SetBulk(nil, recs, false)
	require.NoError(t, err)
	now.advance(10)
	s := &parked{Store: d.store, scans: make(chan struct{}, 1), goOn: make(chan struct{})}
	d.store = s
	d.sweeper.mu.Unlock()
	passes(t, func() error { return use(d, "other") })
	<-s.scans // by the collector, and it is on its way
	passes(t, func() error { return use(d, "other") })
	close(s.goOn)
	require.Eventually(t, func() bool {
		if err := use(d, "other"); err != nil {
			t.Error(err)
		}
		n, err := d.Count(nil)
		return err == nil && n <= 100
	}, time.Minute, time.Millisecond)
	require.NotZero(t, d.sweeper.expired.Load())
	require.NotZero(t, d.sweeper.evicted.Load())
}

// A client that takes a step in memory leaves a record whose key another client has locked, for
// example while a script looks at it.
func TestStepsInMemoryDoNotWaitForKeys(t *testing.T) {
	for _, expr := range []string{":", "*", "%"} {
		t.Run(expr, func(t *testing.T) {
			now := newClock()
			d := mustOpen(t, Options{Now: now.now}, expr).DB(0)
			require.NoError(t, d.Set(nil, []byte("expired"), nil, 1))
			now.advance(10)
			locked := d.stripes.of([]byte("expired"))
			locked.Lock()
			other := "other"
			for i := 0; d.stripes.of([]byte(other)) == locked; i++ {
				other = fmt.Sprint("other", i)
			}
			passes(t, func() error { return use(d, other) })
			require.Zero(t, d.sweeper.expired.Load())
			locked.Unlock()
			passes(t, func() error { return use(d, other) })
			require.EqualValues(t, 1, d.sweeper.expired.Load(), "a later walk finds it")
		})
	}
}

// While a vacuum is at it, the scores of all clients add up. The first client that comes afterwards
// must not pay for all of them.
func TestNobodyPaysForWhatManyHaveLeft(t *testing.T) {
	for name, touch := range map[string]func(d *DB) error{
		"set": func(d *DB) error { return d.Set(nil, []byte("last"), nil, record.Never) },
		"get": func(d *DB) error { _, _, err := d.Get(nil, nil, []byte("000000")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			d := mustOpen(t, Options{}, "%#ktcapcnt=100").DB(0)
			require.NoError(t, use(d, "000000")) // a walk has begun
			d.sweeper.mu.Lock()                  // somebody is at it
			for i := range 20_000 {
				require.NoError(t, d.Set(nil, fmt.Appendf(nil, "%06d", i), nil, record.Never))
			}
			d.sweeper.mu.Unlock()
			d.sweeper.walk = walk{on: true, at: []byte("000000")}
			require.NoError(t, touch(d))
			require.LessOrEqual(t, d.sweeper.evicted.Load(), int64(maxCollect))
			for range 20_000 / maxCollect {
				require.NoError(t, use(d, "000000"))
			}
			n, err := d.Count(nil)
			require.NoError(t, err)
			require.LessOrEqual(t, n, int64(101), "and the limit is kept all the same")
		})
	}
}

// A set, and a get, come through while a vacuum is in the middle of its way.
func TestAVacuumStandsInNobodysWay(t *testing.T) {
	for _, expr := range []string{":", "*", "%", "v.kct"} {
		for _, step := range []int64{0, 100_000} {
			t.Run(fmt.Sprint(expr, step), func(t *testing.T) {
				path := expr
				if expr == "v.kct" {
					path = filepath.Join(t.TempDir(), expr)
				}
				now := newClock()
				d := mustOpen(t, Options{Now: now.now}, path).DB(0)
				var recs []Record
				for i := range 5_000 {
					recs = append(recs, Record{Key: fmt.Appendf(nil, "%06d", i), Value: []byte("v"), XT: record.XT(1 + 100*(i%2))})
				}
				_, err := d.SetBulk(nil, recs, false)
				require.NoError(t, err)
				now.advance(10)
				var asked atomic.Int64
				inside, goOn := make(chan struct{}), make(chan struct{})
				ended := make(chan error, 1)
				go func() {
					ended <- d.Vacuum(func() error {
						if asked.Add(1) == 100 {
							close(inside)
							<-goOn
						}
						return nil
					}, step)
				}()
				<-inside
				passes(t, func() error { return use(d, "other") })
				passes(t, func() error { _, err := d.Count(nil); return err })
				close(goOn)
				require.NoError(t, <-ended)
			})
		}
	}
}

// A vacuum in steps goes on with the walk that the collector is on, too. The race detector tells if
// one looks at it while the other moves it.
func TestAVacuumAndTheCollectorShareAWalk(t *testing.T) {
	d := mustOpen(t, Options{}, ":").DB(0)
	for i := range 3 * maxCollect {
		require.NoError(t, d.Set(nil, fmt.Append(nil, i), nil, record.XT(1000)))
	}
	var collector sync.WaitGroup
	collector.Go(func() {
		for range 40 {
			d.sweeper.asked.Store(true)
			d.sweeper.add(writeScore)
			d.sweeper.serve(nil)
		}
	})
	for range 40 {
		require.NoError(t, d.Vacuum(nil, 2*maxCollect))
	}
	collector.Wait()
}
