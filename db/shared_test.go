package db

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
	"gotycoon/db/record"
)

// clocked is an engine whose clock a test moves.
type clocked struct {
	*mem.Server
	clock *clock
}

func (c *clocked) Now() int64 { return c.clock.seconds.Load() }

// servers opens catalogs of several servers on one engine in memory.
func servers(t *testing.T, n int, o mem.Options, names ...string) []*Catalog {
	place := mem.New(o)
	all := make([]*Catalog, n)
	for i := range all {
		e := place.Server(strconv.Itoa(i))
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		all[i] = mustOpen(t, Options{Shared: e, SID: 1}, names...)
	}
	return all
}

// faults makes one call of five fail in one way or another.
func faults(seed uint64) func(mem.Call) mem.Fault {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 1))
	return func(c mem.Call) (f mem.Fault) {
		mu.Lock()
		defer mu.Unlock()
		switch rnd.IntN(10) {
		case 0:
			f.Kind = engine.Undone
		case 1:
			if c.Name == mem.Write {
				f.Kind, f.Made = engine.Unknown, rnd.IntN(2) == 0
			}
		}
		return f
	}
}

// Three servers increment the same numbers while a fifth of all calls fail: each sum is exact, and
// no two callers have heard of the same sum.
func TestIncrementsOfServersThatShare(t *testing.T) {
	all := servers(t, 3, mem.Options{Faults: faults(1)}, "numbers")
	const callers, each, keys = 12, 40, 3
	heard := make([]map[int64]bool, keys)
	for i := range heard {
		heard[i] = map[int64]bool{}
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	for i := range callers {
		d := all[i%len(all)].DB(0)
		work.Go(func() {
			for n := range each {
				k := (i + n) % keys
				sum, err := d.Increment(nil, []byte(strconv.Itoa(k)), 1, 0, record.Never)
				require.NoError(t, err)
				mu.Lock()
				require.False(t, heard[k][sum], "two callers have heard %d", sum)
				heard[k][sum] = true
				mu.Unlock()
			}
		})
	}
	work.Wait()
	total := int64(0)
	for k := range keys {
		sum, err := all[0].DB(0).Increment(nil, []byte(strconv.Itoa(k)), 0, 0, record.Never)
		require.NoError(t, err)
		require.EqualValues(t, len(heard[k]), sum)
		total += sum
	}
	require.EqualValues(t, callers*each, total)
}

// Transfers by visitors of two records, by atomic bulks and by transactions never change the sum
// that an atomic bulk shows, whichever server it asks.
func TestTransfersOfServersThatShare(t *testing.T) {
	all := servers(t, 3, mem.Options{Faults: faults(2)}, "accounts")
	const accounts, start = 6, 1000
	key := func(i int) []byte { return []byte{byte('a' + i)} }
	var first []Record
	var keys [][]byte
	for i := range accounts {
		first = append(first, Record{Key: key(i), Value: amount(start), XT: record.Never})
		keys = append(keys, key(i))
	}
	_, err := all[0].DB(0).SetBulk(nil, first, true)
	require.NoError(t, err)
	var work sync.WaitGroup
	for i, c := range all {
		d := c.DB(0)
		rnd := rand.New(rand.NewPCG(uint64(i), 3))
		work.Go(func() {
			for n := range 30 {
				from, to := rnd.IntN(accounts), rnd.IntN(accounts)
				if n%5 == 4 {
					require.NoError(t, transferInTransaction(d, key(from), key(to)))
					continue
				}
				paid := false
				require.NoError(t, d.AcceptBulk(nil, [][]byte{key(from), key(to)}, func(_, value []byte, _ int64, _ bool) record.Verdict {
					change := uint64(7)
					if paid = !paid; paid {
						change = -change
					}
					return record.Verdict{Op: record.Store, Value: amount(binary.BigEndian.Uint64(value) + change)}
				}))
			}
		})
		work.Go(func() {
			for range 30 {
				sum := uint64(0)
				require.NoError(t, d.GetBulk(nil, keys, true, func(_ int, value []byte, _ int64) { sum += binary.BigEndian.Uint64(value) }))
				require.EqualValues(t, accounts*start, sum)
			}
		})
	}
	work.Wait()
}

func amount(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// transferInTransaction moves 3 from one account to another, again while the engine ends the
// transaction.
func transferInTransaction(d *DB, from, to []byte) error {
	for {
		t, err := d.Begin(nil, false)
		if err != nil {
			return err
		}
		for key, change := range map[string]uint64{string(from): ^uint64(2), string(to): 3} {
			value, _, err := t.DB().Get(nil, nil, []byte(key))
			if err != nil {
				return err
			}
			if string(from) != string(to) {
				if err := t.DB().Set(nil, []byte(key), amount(binary.BigEndian.Uint64(value)+change), record.Never); err != nil {
					return err
				}
			}
		}
		if err := t.Commit(nil); !dberr.Unavailable(err) && err == nil {
			return nil
		}
	}
}

// A transaction of one server keeps another server's updates waiting, its readers see what was
// before, and other databases go on.
func TestATransactionKeepsOtherServersWaiting(t *testing.T) {
	all := servers(t, 2, mem.Options{}, "x", "y")
	here, there := all[0].DB(0), all[1].DB(0)
	require.NoError(t, here.Set(nil, []byte("k"), []byte("1"), record.Never))
	tx, err := here.Begin(nil, true)
	require.NoError(t, err)
	require.NoError(t, tx.DB().Append(nil, []byte("k"), []byte("2"), record.Never))
	done := make(chan error, 1)
	go func() { done <- there.Append(nil, []byte("k"), []byte("3"), record.Never) }()
	require.NoError(t, all[0].DB(1).Set(nil, []byte("other"), []byte("goes on"), record.Never))
	value, _, err := there.Get(nil, nil, []byte("k"))
	require.NoError(t, err)
	require.Equal(t, "1", string(value))
	select {
	case err := <-done:
		t.Fatalf("the update did not wait: %v", err)
	default:
	}
	require.NoError(t, tx.Commit(nil))
	require.NoError(t, <-done)
	value, _, err = here.Get(nil, nil, []byte("k"))
	require.NoError(t, err)
	require.Equal(t, "123", string(value))
}

// The answer of a transaction's commit never comes, as behind a firewall that has forgotten the
// connection: the transaction has been made all the same, and others need not wait for it.
func TestACommitWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now() // of the bubble: waits cost nothing
		var silent atomic.Bool
		place := mem.New(mem.Options{Faults: func(c mem.Call) (f mem.Fault) {
			if c.Name == mem.Write && silent.CompareAndSwap(true, false) {
				f.Answer = time.Hour
			}
			return f
		}})
		e := place.Server("a")
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		c := mustOpen(t, Options{Shared: e, Gather: gather.Options{Timeout: 50 * time.Millisecond}}, "x")
		d := c.DB(0)
		tx, err := d.Begin(nil, true)
		require.NoError(t, err)
		require.NoError(t, tx.DB().Set(nil, []byte("k"), []byte("1"), record.Never))
		silent.Store(true)
		done := make(chan error, 1)
		go func() { done <- tx.Commit(nil) }()
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(10 * time.Second):
			t.Fatal("the transaction waits for an answer that does not come")
		}
		require.NoError(t, d.Append(nil, []byte("k"), []byte("2"), record.Never))
		value, _, err := d.Get(nil, nil, []byte("k"))
		require.NoError(t, err)
		require.Equal(t, "12", string(value))
		require.Less(t, time.Since(began), 10*time.Second)
	})
}

// The visitor of a script runs once, whatever fails, and no group of others waits in its lane for
// the database's lock.
func TestVisitorsOfScriptsRunOnce(t *testing.T) {
	all := servers(t, 2, mem.Options{Faults: func(c mem.Call) (f mem.Fault) {
		if c.Name == mem.Write {
			f.Delay = time.Millisecond
		}
		return f
	}}, "x")
	visits := 0
	var work sync.WaitGroup
	for i, c := range all {
		d := c.DB(0)
		work.Go(func() {
			for range 20 {
				p := &Pending{Lingers: i == 0}
				_, err := d.Accept(p, []byte("n"), func(_, value []byte, _ int64, _ bool) record.Verdict {
					if i == 0 {
						visits++
					}
					n, _ := strconv.Atoi(string(value))
					return record.Verdict{Op: record.Store, Value: []byte(strconv.Itoa(n + 1))}
				})
				require.NoError(t, err)
			}
		})
	}
	work.Wait()
	require.Equal(t, 20, visits)
	value, _, err := all[0].DB(0).Get(nil, nil, []byte("n"))
	require.NoError(t, err)
	require.Equal(t, "40", string(value))
}

// A number that a client has read on one server lets it change the record on another one, until
// somebody changes it.
func TestNumbersOfServersThatShare(t *testing.T) {
	all := servers(t, 2, mem.Options{}, "x")
	for _, c := range all {
		c.DB(0).Watch(WatchOptions{Uniques: true})
	}
	here, there := all[0].DB(0), all[1].DB(0)
	store := func(d *DB, number uint64, value string) (uint64, error) {
		return d.AcceptIf(nil, []byte("k"), number, func(_, _ []byte, _ int64, _ bool) record.Verdict {
			return record.Verdict{Op: record.Store, Value: []byte(value)}
		})
	}
	written, err := store(here, 0, "1")
	require.NoError(t, err)
	_, _, read, err := there.GetUnique(nil, nil, []byte("k"))
	require.NoError(t, err)
	require.Equal(t, written, read)
	next, err := store(there, read, "2")
	require.NoError(t, err)
	_, err = store(here, written, "3")
	require.ErrorIs(t, err, dberr.ErrConflict)
	same, err := here.AcceptIf(nil, []byte("k"), next, func(_, value []byte, _ int64, _ bool) record.Verdict {
		require.Equal(t, "2", string(value))
		return record.Verdict{Op: record.Keep}
	})
	require.NoError(t, err)
	require.Equal(t, next, same)
}

// What an engine cannot do is refused with words that say so, and takes nothing else with it.
func TestWhatAnEngineRefuses(t *testing.T) {
	d := servers(t, 1, mem.Options{Limits: engine.Limits{Key: 10, Value: 100, Changes: 5, Bytes: 1000}}, "x")[0].DB(0)
	for want, err := range map[string]error{
		"2: invalid operation: the key is longer than 10 bytes":                      d.Set(nil, make([]byte, 11), nil, record.Never),
		"2: invalid operation: the engine keeps values of at most 100 bytes":         d.Set(nil, []byte("k"), make([]byte, 101), record.Never),
		"2: invalid operation: the engine changes at most 5 records in one step":     bulkOf(d, 6, true),
		"2: invalid operation: only the file of a database on disk can be compacted": d.Compact(),
	} {
		require.EqualError(t, err, want)
	}
	require.NoError(t, bulkOf(d, 300, false))
	n, err := d.Count(nil)
	require.NoError(t, err)
	require.EqualValues(t, 300, n)
	for _, expr := range []string{"x#ktcapcnt=5", "x#ktcapsiz=5"} {
		_, err := Open([]string{expr}, Options{Shared: mem.New(mem.Options{}).Server("a")})
		require.ErrorContains(t, err, "needs a database of the server's own")
	}
}

func bulkOf(d *DB, n int, atomic bool) error {
	var recs []Record
	for i := range n {
		recs = append(recs, Record{Key: fmt.Appendf(nil, "%04d", i), Value: []byte("v"), XT: record.Never})
	}
	_, err := d.SetBulk(nil, recs, atomic)
	return err
}

// An engine that is away is said to be away, and its return is noticed.
func TestAnEngineThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now() // of the bubble: waits cost nothing
		var gone sync.RWMutex
		away := false
		place := mem.New(mem.Options{Faults: func(mem.Call) (f mem.Fault) {
			gone.RLock()
			defer gone.RUnlock()
			if away {
				f.Kind, f.Away = engine.Undone, true
			}
			return f
		}})
		e := place.Server("a")
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		c := mustOpen(t, Options{Shared: e, Gather: gather.Options{Timeout: 50 * time.Millisecond}}, "x")
		d := c.DB(0)
		require.NoError(t, d.Set(nil, []byte("k"), []byte("v"), record.Never))
		gone.Lock()
		away = true
		gone.Unlock()
		err := d.Set(nil, []byte("k"), []byte("w"), record.Never)
		require.True(t, dberr.Unavailable(err), "%v", err)
		_, _, err = d.Get(nil, nil, []byte("k"))
		require.True(t, dberr.Unavailable(err), "%v", err)
		_, err = d.Count(nil)
		require.True(t, dberr.Unavailable(err), "%v", err)
		gone.Lock()
		away = false
		gone.Unlock()
		require.Eventually(t, func() bool {
			value, _, err := d.Get(nil, nil, []byte("k"))
			return err == nil && string(value) == "v"
		}, 10*time.Second, time.Millisecond)
		require.Less(t, time.Since(began), 10*time.Second)
	})
}

// A Frozen is of one moment, with its exact number of records, and expired records go by
// themselves, and with a vacuum at once.
func TestAMomentOfAnEngine(t *testing.T) {
	clk := newClock()
	e := &clocked{mem.New(mem.Options{}).Server("a"), clk}
	d := mustOpen(t, Options{Shared: e}, "x").DB(0)
	require.NoError(t, bulkOf(d, 700, false))
	require.NoError(t, d.Set(nil, []byte("mortal"), []byte("m"), 5))
	f, err := d.Freeze()
	require.NoError(t, err)
	require.NoError(t, d.Clear(nil))
	require.EqualValues(t, 701, f.Count())
	seen := int64(0)
	require.NoError(t, f.Scan(func(key, value []byte) error {
		_, _, ok := d.Split(value)
		require.True(t, ok)
		seen++
		return nil
	}))
	require.Equal(t, f.Count(), seen)
	require.NoError(t, f.Close())
	require.NoError(t, d.Set(nil, []byte("mortal"), []byte("m"), 5))
	clk.advance(7)
	_, _, err = d.Get(nil, nil, []byte("mortal"))
	require.ErrorIs(t, err, dberr.ErrNoRecord)
	require.NoError(t, d.Add(nil, []byte("mortal"), []byte("again"), 5), "it counts as absent before it is removed")
	clk.advance(20)
	require.NoError(t, d.Vacuum(nil, 0))
	n, err := d.Count(nil)
	require.NoError(t, err)
	require.Zero(t, n)
}
