package gather_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
)

// cable is the connection to an engine, which can be pulled out.
type cable struct {
	out   atomic.Bool
	hangs bool         // calls then do not end
	calls atomic.Int64 // that were made meanwhile
}

func (c *cable) fault(mem.Call) mem.Fault {
	if !c.out.Load() {
		return mem.Fault{}
	}
	c.calls.Add(1)
	if c.hangs {
		return mem.Fault{Delay: 1000 * time.Hour}
	}
	return mem.Fault{Kind: engine.Undone, Away: true}
}

// Clients are not told where the engine is.
func TestHostsInErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, mem.Options{}, gather.Options{})
		defer w.close()
		for _, away := range []bool{false, true} {
			_, err := gather.Ask(context.Background(), w.gathers[0], func(context.Context) (int, error) {
				return 0, &engine.Error{Kind: engine.Undone, Away: away, Err: errors.New("user kt at db1:5432")}
			})
			require.ErrorContains(t, err, "no answer from the engine within 10s")
			require.Equal(t, !away, strings.Contains(err.Error(), "db1"))
		}
	})
}

// Whoever looks after the server hears why the engine is away, or answers no update, for as long as
// it is so.
func TestWhyTheEngineDoesNotAnswer(t *testing.T) {
	for _, reads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var why atomic.Pointer[error]
			w := newWorld(t, 1, mem.Options{}, gather.Options{})
			defer w.close()
			g := gather.New(&moody{Engine: w.engines[0], why: &why, reads: reads}, gather.Options{})
			defer g.Close()
			_, err := add(g, "n", 1)
			require.NoError(t, err)
			require.NoError(t, g.Stats().Failure)
			untrusted := error(&engine.Error{Kind: engine.Undone, Away: true, Err: errors.New("nobody trusts the certificate of db1:5432")})
			why.Store(&untrusted)
			_, err = add(g, "n", 1)
			require.Equal(t, engine.Undone, engine.KindOf(err), "%v", err)
			s := g.Stats()
			require.True(t, s.Away || s.Silent > time.Second)
			require.ErrorContains(t, s.Failure, "certificate of db1")
			why.Store(nil)
			time.Sleep(time.Second) //lint:sleep of the bubble: a probe has found out
			_, err = add(g, "n", 1)
			require.NoError(t, err)
			require.NoError(t, g.Stats().Failure)
			for _, says := range []error{context.DeadlineExceeded, context.Canceled, errors.Join(context.DeadlineExceeded, untrusted)} {
				time.Sleep(time.Minute) //lint:sleep of the bubble: the engine is back
				hung := error(&engine.Error{Kind: engine.Undone, Away: true, Err: fmt.Errorf("timeout: %w", says)})
				why.Store(&hung)
				_, err = add(g, "n", 1)
				require.Error(t, err)
				require.Equal(t, errors.Is(says, untrusted), g.Stats().Failure != nil, says)
				why.Store(nil)
			}
		})
	}
}

// moody is an engine that refuses updates, and reads unless reads are to succeed.
type moody struct {
	engine.Engine
	why   *atomic.Pointer[error]
	reads bool
}

func (m *moody) Read(ctx context.Context, keys []engine.Key, how engine.Reading) ([]engine.Record, error) {
	if why := m.why.Load(); why != nil && !m.reads {
		return nil, *why
	}
	return m.Engine.Read(ctx, keys, how)
}

func (m *moody) Write(ctx context.Context, g *engine.Group) (engine.Result, error) {
	if why := m.why.Load(); why != nil {
		return engine.Result{}, *why
	}
	return m.Engine.Write(ctx, g)
}

// While the engine is away the first operations wait, and those after them are refused at once. One
// probe in 100 ms finds out that it is back.
func TestAnEngineThatIsAway(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := &cable{hangs: hangs}
			w := newWorld(t, 1, mem.Options{Faults: c.fault}, gather.Options{})
			defer w.close()
			g, ctx := w.gathers[0], context.Background()
			_, err := add(g, "n", 1)
			require.NoError(t, err)
			c.out.Store(true)
			began := time.Now()
			for _, wait := range []time.Duration{10 * time.Second, 0, 0} {
				_, err = add(g, "other", 1) // which has to be read first, so nobody doubts that it was not made
				require.Equal(t, engine.Undone, engine.KindOf(err), "%v", err)
				require.ErrorContains(t, err, "nothing was changed")
				require.InDelta(t, wait, time.Since(began), float64(time.Millisecond))
				began = time.Now()
			}
			_, err = g.Read(ctx, []engine.Key{key("n")})
			require.ErrorIs(t, err, gather.ErrAway)
			require.True(t, g.Stats().Away)
			c.calls.Store(0)
			<-time.After(time.Second)
			if !hangs {
				require.InDelta(t, 10, c.calls.Load(), 1, "probes")
			}
			c.out.Store(false)
			<-time.After(11 * time.Second) // a probe that hangs has to give up
			require.False(t, g.Stats().Away)
			sum, err := add(g, "n", 1)
			require.NoError(t, err)
			require.Equal(t, 2, sum)
			recs, err := g.Read(ctx, []engine.Key{key("n")})
			require.NoError(t, err)
			require.Equal(t, "2", string(recs[0].Value))
		})
	}
}

// Whoever waits when the engine is found to be away is refused with the first one.
func TestAllAreRefusedWithTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cable{}
		c.out.Store(true)
		w := newWorld(t, 1, mem.Options{Faults: c.fault}, gather.Options{})
		defer w.close()
		began, errs := time.Now(), make(chan error, 4)
		for _, name := range []string{"a", "b", "c"} {
			go func() {
				_, err := add(w.gathers[0], name, 1)
				errs <- err
			}()
			<-time.After(3 * time.Second)
		}
		go func() {
			_, err := w.gathers[0].Read(context.Background(), []engine.Key{key("a")})
			errs <- err
		}()
		for range 4 {
			require.Equal(t, engine.Undone, engine.KindOf(<-errs))
		}
		require.InDelta(t, 10*time.Second, time.Since(began), float64(time.Second))
	})
}

// Whoever asks for a moment only, as monitoring does, does not make others give up earlier.
func TestImpatientCallersDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cable{}
		w := newWorld(t, 1, mem.Options{Faults: c.fault}, gather.Options{})
		defer w.close()
		g := w.gathers[0]
		_, err := add(g, "n", 1)
		require.NoError(t, err)
		<-time.After(time.Minute)
		c.out.Store(true)
		within, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = gather.Ask(within, g, func(context.Context) (int, error) {
			return 0, &engine.Error{Kind: engine.Undone, Away: true}
		})
		require.Error(t, err)
		synctest.Wait()
		require.False(t, g.Stats().Away)
		time.AfterFunc(3*time.Second, func() { c.out.Store(false) })
		sum, err := add(g, "n", 1)
		require.NoError(t, err)
		require.Equal(t, 2, sum)
	})
}

// A short outage is waited for.
func TestAShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cable{}
		w := newWorld(t, 1, mem.Options{Faults: c.fault}, gather.Options{})
		defer w.close()
		c.out.Store(true)
		time.AfterFunc(9*time.Second, func() { c.out.Store(false) })
		_, err := add(w.gathers[0], "n", 1)
		require.NoError(t, err)
		require.Less(t, c.calls.Load(), int64(110), "the pauses grow")
		require.False(t, w.gathers[0].Stats().Away)
	})
}

// A group that got no answer, and arrives when its caller has been told that nobody knows, meets no
// later group of its lane.
func TestALateGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		faults := func(c mem.Call) mem.Fault {
			switch {
			case silent.Load() && c.Name == mem.Write:
				return mem.Fault{Kind: engine.Unknown, Made: true, Late: 30 * time.Second}
			case silent.Load():
				return mem.Fault{Kind: engine.Undone, Away: true}
			}
			return mem.Fault{}
		}
		w := newWorld(t, 1, mem.Options{Faults: faults}, gather.Options{})
		defer w.close()
		g := w.gathers[0]
		_, err := do(context.Background(), g, set("k", "old"))
		require.NoError(t, err)
		silent.Store(true)
		_, err = do(context.Background(), g, set("k", "unknown"))
		require.ErrorIs(t, err, gather.ErrNoAnswer)
		silent.Store(false)
		<-time.After(time.Second)
		_, err = do(context.Background(), g, set("k", "new"))
		require.NoError(t, err)
		<-time.After(time.Minute) // the group has arrived
		require.Equal(t, "new", w.value("k"))
		require.EqualValues(t, 1, g.Stats().SettledUndone)
	})
}

// Too many operations, or too many bytes, are refused and not kept.
func TestTheQueueHasBounds(t *testing.T) {
	for _, o := range []gather.Options{{Queue: 3}, {QueueBytes: 350}} {
		synctest.Test(t, func(t *testing.T) {
			w := one(t, new(gate), mem.Options{}, o)
			defer w.close()
			op := set("k", string(make([]byte, 100)))
			answers := w.begin(op, op, op)
			_, err := do(context.Background(), w.gathers[0], op)
			require.ErrorIs(t, err, gather.ErrBusy)
			require.Equal(t, engine.Undone, engine.KindOf(err))
			require.EqualValues(t, 3, w.gathers[0].Stats().Queue)
			for _, a := range answers() {
				require.NoError(t, a.err)
			}
			require.NoError(t, w.begin(op)()[0].err)
			huge := set("k", string(make([]byte, 1000)))
			require.NoError(t, w.begin(huge)()[0].err, "one operation may always come")
		})
	}
}

// A caller who leaves is told whether anything may have happened. Its body does not run any more,
// and what it has given may change.
func TestCallersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := one(t, new(gate), mem.Options{}, gather.Options{})
		defer w.close()
		first := w.begin(set("first", "1"))
		ran, name, value := 0, []byte("k"), []byte("value")
		do := func(ctx context.Context) error {
			_, err := do(ctx, w.gathers[0], operation{Keys: []engine.Key{{Key: name}}, Blind: true, Body: func(v *gather.View) error {
				ran++
				v.Set(engine.Key{Key: name}, value, engine.Forever)
				return nil
			}})
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		err := do(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, engine.Undone, engine.KindOf(err), "the first group is still under way")
		require.NoError(t, first()[0].err)
		require.Zero(t, ran)

		ctx, cancel = context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, do(ctx), gather.ErrNoAnswer)
		require.Equal(t, 1, ran)
		copy(name, "X")
		copy(value, "XXXXX")
		require.NoError(t, w.begin(set("last", "1"))()[0].err)
		require.Equal(t, "value", w.value("k"))
		require.Equal(t, "-", w.value("X"))
		require.Equal(t, 1, ran)

		ctx, cancel = context.WithCancel(context.Background())
		cancel()
		_, err = w.gathers[0].Read(ctx, []engine.Key{key("k")})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, do(ctx), context.Canceled)
		require.Equal(t, 1, ran)
	})
}

// Close waits for what is under way, and takes nothing new.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := one(t, new(gate), mem.Options{}, gather.Options{})
		answers := w.begin(set("a", "1"), set("b", "2"))
		closed := make(chan error)
		go func() { closed <- w.gathers[0].Close() }()
		synctest.Wait()
		_, err := do(context.Background(), w.gathers[0], set("c", "3"))
		require.ErrorIs(t, err, gather.ErrClosed)
		_, err = w.gathers[0].Read(context.Background(), []engine.Key{key("a")})
		require.ErrorIs(t, err, gather.ErrClosed)
		for _, a := range answers() {
			require.NoError(t, a.err)
		}
		require.NoError(t, <-closed)
		require.Equal(t, "1 2 -", w.value("a")+" "+w.value("b")+" "+w.value("c"))
		require.NoError(t, w.engines[0].Close())
	})
}

// Close ends also while nobody answers, and the outcome of a group is unknown for ever.
func TestCloseOfAnEngineThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cable{hangs: true}
		w := newWorld(t, 1, mem.Options{Faults: c.fault}, gather.Options{})
		require.NoError(t, w.begin(set("a", "1"))()[0].err)
		c.out.Store(true)
		answers := w.begin(set("a", "2"), set("b", "2"))
		began := time.Now()
		w.close()
		require.LessOrEqual(t, time.Since(began), 21*time.Second)
		all := answers()
		require.ErrorIs(t, all[0].err, gather.ErrNoAnswer)
		require.Equal(t, engine.Undone, engine.KindOf(all[1].err), "it has waited behind the other one")
	})
}

// forgetful is an engine that has lost which lanes it has given out: the first one is another
// server's.
type forgetful struct {
	*mem.Server
	asked int
}

func (f *forgetful) Lane(ctx context.Context) (uint64, error) {
	if f.asked++; f.asked == 1 {
		return 1, nil
	}
	return f.Server.Lane(ctx)
}

// A server that finds another one's groups in its lane goes on with another lane.
func TestALaneOfAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, mem.Options{}, gather.Options{Lanes: 1})
		defer w.close()
		for range 5 {
			_, err := add(w.gathers[0], "n", 1)
			require.NoError(t, err)
		}
		e := &forgetful{Server: w.store.Server("1")}
		g := gather.New(e, gather.Options{Lanes: 1})
		sum, err := add(g, "n", 1)
		require.NoError(t, err)
		require.Equal(t, 6, sum)
		require.NoError(t, g.Close())
		require.NoError(t, e.Close())
	})
}

// amnesiac is an engine that loses the answer of a group which it has made, and by the time that it
// is asked does not remember the group.
type amnesiac struct {
	*mem.Server
	lost atomic.Bool
}

func (f *amnesiac) Write(ctx context.Context, g *engine.Group) (engine.Result, error) {
	r, err := f.Server.Write(ctx, g)
	if err == nil && f.lost.CompareAndSwap(false, true) {
		return engine.Result{}, &engine.Error{Kind: engine.Unknown, Away: true, Err: io.ErrUnexpectedEOF}
	}
	return r, err
}

func (f *amnesiac) Settle(context.Context, engine.GroupID) (engine.Result, error) {
	return engine.Result{}, engine.ErrForgotten
}

// What may have been made is not made again, though nobody can tell any more.
func TestAForgottenGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &amnesiac{Server: mem.New(mem.Options{}).Server("0")}
		g := gather.New(e, gather.Options{})
		began := time.Now()
		_, err := add(g, "n", 1)
		require.ErrorIs(t, err, gather.ErrNoAnswer)
		require.Less(t, time.Since(began), time.Second)
		sum, err := add(g, "n", 1)
		require.NoError(t, err)
		require.Equal(t, 2, sum)
		require.NoError(t, g.Close())
		require.NoError(t, e.Close())
	})
}
