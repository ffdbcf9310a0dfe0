package mem_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/mem"
	"gotycoon/ulog"
)

// plan is the faults of the next calls with a name.
type plan map[mem.Name][]mem.Fault

func (p plan) fault(c mem.Call) (f mem.Fault) {
	if next := p[c.Name]; len(next) > 0 {
		f, p[c.Name] = next[0], next[1:]
	}
	return f
}

// group returns a group of one set.
func group(lane, seq uint64, key string, xt int64) *engine.Group {
	k := engine.Key{Key: []byte(key)}
	up := ulog.Update{Op: ulog.OpSet, Key: k.Key, Value: []byte("\xff\xff\xff\xff\xffv")}
	return &engine.Group{ID: engine.GroupID{Lane: lane, Seq: seq}, Changes: []engine.Change{{Key: k, Value: []byte("v"), XT: xt, Log: []ulog.Update{up}}}}
}

// draw gives a server the lanes 1 and 2.
func draw(t *testing.T, e engine.Engine) {
	for n := range uint64(2) {
		lane, err := e.Lane(t.Context())
		require.NoError(t, err)
		require.Equal(t, n+1, lane)
	}
}

func read(t *testing.T, e engine.Engine, key string) []engine.Record {
	recs, err := e.Read(t.Context(), []engine.Key{{Key: []byte(key)}}, engine.Reading{})
	require.NoError(t, err)
	return recs
}

// A group that is committed after one with a later stamp is not missed by who reads the log up to
// its horizon.
func TestTheHorizonWaitsForCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mem.New(mem.Options{Faults: plan{mem.Write: {{Commit: 10 * time.Millisecond}}}.fault}).Server("a")
		defer e.Close()
		draw(t, e)
		first := make(chan engine.Result, 1)
		go func() {
			r, err := e.Write(t.Context(), group(1, 1, "a", 1))
			require.NoError(t, err)
			first <- r
		}()
		synctest.Wait()
		second, err := e.Write(t.Context(), group(2, 1, "b", 1))
		require.NoError(t, err)
		require.Empty(t, read(t, e, "a"))
		require.Len(t, read(t, e, "b"), 1)
		groups, upTo, err := e.Log().Read(t.Context(), 0, 1<<20)
		require.NoError(t, err)
		require.Empty(t, groups)
		require.Less(t, upTo, second.Stamp)
		snap, err := e.Snapshot(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, upTo, snap.Stamp())
		r := <-first
		require.Equal(t, upTo+1, r.Stamp)
		groups, upTo, err = e.Log().Read(t.Context(), upTo, 1<<20)
		require.NoError(t, err)
		require.Len(t, groups, 2)
		require.Equal(t, second.Stamp, upTo)
		require.Equal(t, "a", string(groups[0].Updates[0].Key))
	})
}

// The four ends of a group without an answer.
func TestSettleOfLateGroups(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		fault  mem.Fault
		settle time.Duration // after the write
		took   time.Duration
		made   bool
	}{
		"made at once":               {mem.Fault{Made: true}, 0, 0, true},
		"never made":                 {mem.Fault{}, 0, 0, false},
		"settled before it arrives":  {mem.Fault{Made: true, Late: 20 * ms}, 10 * ms, 0, false},
		"settled after it arrived":   {mem.Fault{Made: true, Late: 20 * ms}, 30 * ms, 0, true},
		"settled while it is made":   {mem.Fault{Made: true, Late: 20 * ms, Commit: 20 * ms}, 30 * ms, 10 * ms, true},
		"settled while it is locked": {mem.Fault{Made: true, Commit: 20 * ms}, 10 * ms, 10 * ms, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.fault.Kind = engine.Unknown
				e := mem.New(mem.Options{Faults: plan{mem.Write: {c.fault}}.fault}).Server("a")
				defer e.Close()
				draw(t, e)
				_, err := e.Write(t.Context(), group(1, 1, "k", 1))
				require.Equal(t, engine.Unknown, engine.KindOf(err))
				<-time.After(c.settle)
				began := time.Now()
				r, err := e.Settle(t.Context(), engine.GroupID{Lane: 1, Seq: 1})
				require.Equal(t, c.took, time.Since(began))
				if c.made {
					require.NoError(t, err)
					require.Equal(t, r.Revision, read(t, e, "k")[0].Revision)
				} else {
					require.ErrorIs(t, err, engine.ErrUndone)
				}
				<-time.After(time.Second)
				require.Equal(t, c.made, len(read(t, e, "k")) == 1)
			})
		})
	}
}

// A group that was settled does not end what a later group of its lane holds when it arrives.
func TestALateGroupTouchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := mem.Fault{Kind: engine.Unknown, Made: true, Late: 50 * time.Millisecond}
		e := mem.New(mem.Options{Faults: plan{mem.Write: {late}}.fault}).Server("a")
		defer e.Close()
		draw(t, e)
		_, err := e.Write(t.Context(), group(1, 1, "k", 1))
		require.Equal(t, engine.Unknown, engine.KindOf(err))
		_, err = e.Settle(t.Context(), engine.GroupID{Lane: 1, Seq: 1})
		require.ErrorIs(t, err, engine.ErrUndone)
		_, err = e.Read(t.Context(), []engine.Key{{Key: []byte("k")}}, engine.Reading{Hold: engine.GroupID{Lane: 1, Seq: 2}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Write(ctx, group(2, 1, "k", 1))
		require.Equal(t, engine.Undone, engine.KindOf(err), "the key is held")
	})
}

// A server that is cut off knows that it has lost its lease before another server can have it.
func TestLeaseOfAServerThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cut atomic.Bool
		s := mem.New(mem.Options{Faults: func(c mem.Call) mem.Fault {
			if cut.Load() && c.Server == "a" {
				return mem.Fault{Kind: engine.Undone, Away: true}
			}
			return mem.Fault{}
		}})
		a, b := s.Server("a"), s.Server("b")
		defer a.Close()
		defer b.Close()
		one, lost, err := a.Leases().Hold(t.Context(), "leader")
		require.NoError(t, err)
		<-time.After(time.Minute)
		cut.Store(true)
		began, next := time.Now(), make(chan time.Duration, 1)
		go func() {
			two, _, err := b.Leases().Hold(t.Context(), "leader")
			require.NoError(t, err)
			require.Greater(t, two.Number, one.Number)
			next <- time.Since(began)
		}()
		<-lost
		knew := time.Since(began)
		taken := <-next
		require.Less(t, knew, taken-2*time.Second)
		require.LessOrEqual(t, taken, 10*time.Second)
		cut.Store(false)
		draw(t, a)
		g := group(1, 1, "k", 1)
		g.Guard = &one
		_, err = a.Write(t.Context(), g)
		require.ErrorIs(t, err, engine.ErrFenced)
	})
}

// Nobody becomes the holder of a lease while a group of the former holder is being made.
func TestALeaseWaitsForGuardedGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{Faults: plan{mem.Write: {{Commit: 3 * time.Second}}}.fault})
		a, b := s.Server("a"), s.Server("b")
		defer a.Close()
		defer b.Close()
		ctx, giveUp := context.WithCancel(t.Context())
		one, lost, err := a.Leases().Hold(ctx, "leader")
		require.NoError(t, err)
		draw(t, a)
		g := group(1, 1, "k", 1)
		g.Guard = &one
		go func() {
			_, err := a.Write(t.Context(), g)
			require.NoError(t, err)
		}()
		synctest.Wait()
		giveUp()
		<-lost
		_, _, err = b.Leases().Hold(t.Context(), "leader")
		require.NoError(t, err)
		require.Len(t, read(t, b, "k"), 1)
	})
}

// The lock of a transaction lasts until its commit has arrived.
func TestACommitThatArrivesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := mem.Fault{Kind: engine.Unknown, Made: true, Late: 50 * time.Millisecond}
		e := mem.New(mem.Options{Faults: plan{mem.Write: {late}}.fault}).Server("a")
		defer e.Close()
		draw(t, e)
		tx, err := e.Begin(t.Context(), 0)
		require.NoError(t, err)
		_, err = tx.Commit(t.Context(), group(1, 1, "k", 1))
		require.Equal(t, engine.Unknown, engine.KindOf(err))
		tx.Abort()
		began := time.Now()
		r, err := e.Write(t.Context(), group(2, 1, "k", 2))
		require.NoError(t, err)
		require.Equal(t, 50*time.Millisecond, time.Since(began))
		require.Equal(t, r.Revision, read(t, e, "k")[0].Revision)
	})
}

func TestSeededIsTheSameAgain(t *testing.T) {
	rates := mem.Rates{Undone: 0.2, Unknown: 0.2, Delay: 0.5, Longest: time.Second}
	one, two, other := mem.Seeded(1, rates), mem.Seeded(1, rates), mem.Seeded(2, rates)
	kinds, same := map[engine.Kind]int{}, true
	for range 200 {
		f := one(mem.Call{Name: mem.Write})
		require.Equal(t, f, two(mem.Call{Name: mem.Write}))
		same = same && f == other(mem.Call{Name: mem.Write})
		kinds[f.Kind]++
	}
	require.False(t, same)
	require.Len(t, kinds, 3)
}
