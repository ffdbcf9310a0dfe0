package db

import (
	"context"
	"fmt"
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

// storing returns a visitor that stores a value.
func storing(value string) record.Visitor {
	return func(_, _ []byte, _ int64, _ bool) record.Verdict {
		return record.Verdict{Op: record.Renew, Value: []byte(value), XT: record.Never}
	}
}

// together runs operations in one group of the only lane, in their order.
func together(t *testing.T, c *Catalog, ops ...func()) {
	in, out := make(chan struct{}), make(chan struct{})
	var work sync.WaitGroup
	var once sync.Once
	work.Go(func() {
		_, err := c.DB(0).Accept(nil, []byte("first"), func(_, _ []byte, _ int64, _ bool) record.Verdict {
			once.Do(func() { close(in); <-out })
			return record.Verdict{}
		})
		require.NoError(t, err)
	})
	<-in
	for i, op := range ops {
		work.Go(op)
		require.Eventually(t, func() bool { return c.Groups().Stats().Queue == int64(i+2) }, 10*time.Second, time.Millisecond)
	}
	close(out)
	work.Wait()
}

// A client whose record was replaced in the same group is told a number that no record has: with it
// nothing can be changed, also not in a group that has just changed the record.
func TestTheNumberOfAReplacedRecord(t *testing.T) {
	c := mustOpen(t, Options{Shared: mem.New(mem.Options{}).Server("0"), Gather: gather.Options{Lanes: 1}}, "a")
	d, k := c.DB(0), []byte("k")
	var told uint64
	together(t, c,
		func() { told, _ = d.Accept(nil, k, storing("mine")) },
		func() { _, _ = d.Accept(nil, k, storing("another client's")) })
	require.Equal(t, engine.Replaced, told)
	var err error
	together(t, c,
		func() { _, _ = d.Accept(nil, k, storing("a third client's")) },
		func() { _, err = d.AcceptIf(nil, k, told, storing("mine again")) })
	require.ErrorIs(t, err, dberr.ErrConflict)
	value, _, err := d.Get(nil, nil, k)
	require.NoError(t, err)
	require.Equal(t, "a third client's", string(value))
}

// A body that runs several times takes the memory of large values once.
func TestMemoryOfABodyThatRunsAgain(t *testing.T) {
	var fails atomic.Int64
	place := mem.New(mem.Options{Faults: func(c mem.Call) (f mem.Fault) {
		if c.Name == mem.Write && fails.Add(-1) >= 0 {
			f.Kind = engine.Undone
		}
		return f
	}})
	d, k := mustOpen(t, Options{Shared: place.Server("0")}, "a").DB(0), []byte("k")
	for name, op := range map[string]func(p *Pending) error{
		"visit":  func(p *Pending) error { _, err := d.Accept(p, k, storing("v")); return err },
		"bulk":   func(p *Pending) error { return d.AcceptBulk(p, [][]byte{k}, storing("v")) },
		"seize":  func(p *Pending) error { _, _, err := d.Seize(p, nil, k); return err },
		"append": func(p *Pending) error { return d.Append(p, k, []byte("v"), record.Never) },
	} {
		var most []int
		for _, n := range []int64{0, 5} {
			d.batches = sync.Pool{} // none that has room
			require.NoError(t, d.Set(nil, k, make([]byte, largeSize), record.Never))
			money := purse{left: 100 * largeSize}
			fails.Store(n)
			p := &Pending{Purse: &money}
			require.NoError(t, op(p), name)
			require.Equal(t, money.held, p.Taken(), name)
			most = append(most, money.most)
		}
		require.Equal(t, most[0], most[1], name)
	}
}

// An engine has so many lanes and no more: transactions that follow each other share one.
func TestLanesOfTransactions(t *testing.T) {
	var lanes atomic.Int64
	place := mem.New(mem.Options{Faults: func(c mem.Call) (f mem.Fault) {
		if c.Name == mem.Lane {
			lanes.Add(1)
		}
		return f
	}})
	d := mustOpen(t, Options{Shared: place.Server("0")}, "a").DB(0)
	for i := range 50 {
		_, err := d.Accept(&Pending{Lingers: true}, []byte("k"), storing(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, lanes.Load())
	value, _, err := d.Get(nil, nil, []byte("k"))
	require.NoError(t, err)
	require.Equal(t, "49", string(value))
}

// forgetful is an engine that has lost which lanes it has given out: the first one is another
// server's.
type forgetful struct {
	*mem.Server
	asked bool
}

func (f *forgetful) Lane(ctx context.Context) (uint64, error) {
	if !f.asked {
		f.asked = true
		return 1, nil
	}
	return f.Server.Lane(ctx)
}

// A transaction in a lane that another server has too changes nothing, and the next one has another.
func TestALaneOfAnotherServer(t *testing.T) {
	place := mem.New(mem.Options{})
	visit := func(d *DB) error {
		_, err := d.Accept(&Pending{Lingers: true}, []byte("k"), storing("v"))
		return err
	}
	d := mustOpen(t, Options{Shared: place.Server("0")}, "a").DB(0)
	for range 5 {
		require.NoError(t, visit(d))
	}
	d = mustOpen(t, Options{Shared: &forgetful{Server: place.Server("1")}}, "a").DB(0)
	require.Error(t, visit(d))
	require.NoError(t, visit(d))
}

// A server whose lanes are lost, as the engine was taken back to the past, gives up all of them with
// the first transaction that finds it out.
func TestLanesOfALostPast(t *testing.T) {
	var begun atomic.Int64
	all := make(chan struct{})
	place := mem.New(mem.Options{Faults: func(c mem.Call) (f mem.Fault) {
		if c.Name == mem.Begin { // of three each waits for the others, so each has a lane
			if begun.Add(1) == 3 {
				close(all)
			}
			<-all
		}
		return f
	}})
	back := place.Keep()
	c := mustOpen(t, Options{Shared: place.Server("0")}, "a", "b", "c")
	d := c.DB(0)
	var work sync.WaitGroup
	for i := range 3 {
		work.Go(func() {
			if _, err := c.DB(i).Accept(&Pending{Lingers: true}, []byte("k"), storing(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	back()
	_, err := d.Accept(&Pending{Lingers: true}, []byte("k"), storing("v"))
	require.ErrorContains(t, err, "nothing was changed")
	for range 4 {
		_, err := d.Accept(&Pending{Lingers: true}, []byte("k"), storing("v"))
		require.NoError(t, err)
	}
}

// A server that finds out that its lanes are lost when it asks what has become of a transaction gives
// up all of them, too.
func TestALostPastWithoutAnAnswer(t *testing.T) {
	var lost atomic.Bool
	var back func()
	place := mem.New(mem.Options{Faults: func(c mem.Call) (f mem.Fault) {
		if c.Name == mem.Write && lost.CompareAndSwap(true, false) {
			back()
			f.Kind = engine.Unknown
		}
		return f
	}})
	back = place.Keep()
	d := mustOpen(t, Options{Shared: place.Server("0")}, "a").DB(0)
	visit := func() error {
		_, err := d.Accept(&Pending{Lingers: true}, []byte("k"), storing("v"))
		return err
	}
	require.NoError(t, visit())
	lost.Store(true)
	require.ErrorContains(t, visit(), "the transaction has not been made")
	require.NoError(t, visit())
}

// Two procedures on two servers, each in a transaction of the database that the other one wants, do
// not wait for each other for ever.
func TestACircleOverServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now() // of the bubble: waits cost nothing
		place := mem.New(mem.Options{})
		var all []*Catalog
		for i := range 2 {
			e := place.Server(fmt.Sprint(i))
			t.Cleanup(func() { require.NoError(t, e.Close()) })
			all = append(all, mustOpen(t, Options{Shared: e, Gather: gather.Options{Timeout: 50 * time.Millisecond}}, "a", "b"))
		}
		for i, c := range all {
			tx, err := c.DB(i).Begin(nil, false)
			require.NoError(t, err)
			defer func() { require.NoError(t, tx.Abort()) }()
		}
		for i, c := range all {
			_, err := c.DB(1-i).Accept(&Pending{Lingers: true}, []byte("k"), storing("v"))
			require.ErrorContains(t, err, "another server has the database for a transaction")
		}
		require.Less(t, time.Since(began), 10*time.Second)
	})
}

// A transaction that the closing server aborts while it waits for the engine's lock leaves no lock.
func TestAnAbortMeetsABeginInTheEngine(t *testing.T) {
	all := servers(t, 2, mem.Options{}, "a")
	tx, err := all[0].DB(0).Begin(nil, false)
	require.NoError(t, err)
	d := all[1].DB(0)
	began := make(chan error, 1)
	go func() {
		_, err := d.Begin(nil, false)
		began <- err
	}()
	require.Eventually(t, func() bool { return d.tx.Load() != nil }, 10*time.Second, time.Millisecond)
	require.NoError(t, d.tx.Load().Abort())
	require.NoError(t, tx.Abort())
	require.ErrorIs(t, <-began, errEnded)
	require.NoError(t, all[0].DB(0).Set(nil, []byte("k"), nil, record.Never))
}

// recall is the right of a client, which is taken away.
type recall struct{ gone atomic.Bool }

func (r *recall) Current() bool { return !r.gone.Load() }
func (r *recall) Renew() error  { return dberr.ErrReadOnly }

// A right that is taken away while an update waits for its turn is asked for again, also that of an
// update which reads nothing, and that of a clear.
func TestRightsWhenTheTurnComes(t *testing.T) {
	c := mustOpen(t, Options{Shared: mem.New(mem.Options{}).Server("0"), Gather: gather.Options{Lanes: 1}}, "a")
	d, k := c.DB(0), []byte("k")
	require.NoError(t, d.Set(nil, k, []byte("old"), record.Never))
	keep := func(_, _ []byte, _ int64, _ bool) record.Verdict { return record.Verdict{} }
	for what, update := range map[string]func(p *Pending) error{
		"set":   func(p *Pending) error { return d.Set(p, k, []byte("new"), record.Never) },
		"touch": func(p *Pending) error { return d.Touch(p, k, 5) },
		"clear": func(p *Pending) error { return d.Clear(p) },
		"bulk": func(p *Pending) error {
			_, err := d.SetBulk(p, []Record{{Key: k, Value: []byte("new")}}, false)
			return err
		},
		"atomic bulk": func(p *Pending) error {
			_, err := d.SetBulk(p, []Record{{Key: k, Value: []byte("new")}, {Key: []byte("l")}}, true)
			return err
		},
	} {
		in, out := make(chan struct{}, 2), make(chan struct{})
		busy := func(_, _ []byte, _ int64, _ bool) record.Verdict {
			in <- struct{}{}
			<-out
			return keep(nil, nil, 0, false)
		}
		var work sync.WaitGroup
		work.Go(func() { // one lane
			_, err := d.Accept(nil, []byte("one"), busy)
			require.NoError(t, err)
		})
		work.Go(func() { // and the other
			visits := 0
			require.NoError(t, d.AcceptBulk(nil, [][]byte{[]byte("two"), []byte("three")}, func(_, _ []byte, _ int64, _ bool) record.Verdict {
				if visits++; visits == 1 {
					return busy(nil, nil, 0, false)
				}
				return record.Verdict{}
			}))
		})
		<-in
		<-in
		r, done := new(recall), make(chan error, 1)
		go func() { done <- update(&Pending{Rights: r}) }()
		require.Eventually(t, func() bool { return c.Groups().Stats().Queue == 3 }, 10*time.Second, time.Millisecond)
		r.gone.Store(true)
		close(out)
		require.ErrorIs(t, <-done, dberr.ErrReadOnly, what)
		work.Wait()
		value, xt, err := d.Get(nil, nil, k)
		require.NoError(t, err, what)
		require.Equal(t, "old", string(value), what)
		require.Equal(t, record.MaxXT, xt, what)
	}
}

// The error of a bulk that was made in part does not say that nothing was changed.
func TestABulkThatIsMadeInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now() // of the bubble: waits cost nothing
		var writes atomic.Int64
		place := mem.New(mem.Options{Faults: func(mem.Call) (f mem.Fault) {
			if writes.Add(1) > 3 {
				f.Kind, f.Away = engine.Undone, true
			}
			return f
		}})
		e := place.Server("0")
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		c := mustOpen(t, Options{Shared: e, Gather: gather.Options{Timeout: 50 * time.Millisecond, Lanes: 1}}, "a")
		var recs []Record
		for i := range 1500 {
			recs = append(recs, Record{Key: fmt.Appendf(nil, "%d", i), Value: []byte("v"), XT: record.Never})
		}
		n, err := c.DB(0).SetBulk(nil, recs, false)
		require.NotZero(t, n)
		require.ErrorContains(t, err, fmt.Sprintf("%d of the records were stored", n))
		require.NotContains(t, err.Error(), "nothing was changed")
		require.True(t, dberr.Unavailable(err))
		writes.Store(-1 << 40)
		require.Less(t, time.Since(began), 10*time.Second)
	})
}
