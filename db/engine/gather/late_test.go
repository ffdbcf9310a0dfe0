package gather_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// in makes an operation one of another database.
func in(db uint16, o operation) operation {
	for i := range o.Keys {
		o.Keys[i].DB = db
	}
	for i := range o.Updates {
		o.Updates[i].DBID = db
	}
	return o
}

// append returns an operation that appends to a record.
func appends(name, more string) operation {
	k := key(name)
	return operation{Keys: []engine.Key{k}, Body: func(v *gather.View) error {
		r, _ := v.Read(k)
		v.Set(k, append(append([]byte{}, r.Value...), more...), engine.Forever)
		return nil
	}}
}

// Operations of other databases do not wait for a transaction of another server, on whatever lane,
// and those that do are made as soon as it ends.
func TestATransactionHoldsUpItsDatabaseAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, mem.Options{}, gather.Options{})
		defer w.close()
		g, ctx := w.gathers[0], context.Background()
		tx, err := w.engines[1].Begin(ctx, 0)
		require.NoError(t, err)
		var work sync.WaitGroup
		for i := range 20 {
			work.Go(func() {
				_, err := do(ctx, g, []operation{set(fmt.Sprint("k", i), "v"), appends(fmt.Sprint("n", i), "v")}[i%2])
				require.NoError(t, err)
			})
		}
		both := operation{Keys: []engine.Key{key("k1"), key("k2")}, Body: func(v *gather.View) error {
			v.Set(key("k1"), []byte("both"), engine.Forever)
			return nil
		}}
		clear := operation{Clear: &engine.Clear{DB: 0}, Blind: true}
		for _, o := range []operation{both, clear} {
			work.Go(func() {
				_, err := do(ctx, g, o)
				require.NoError(t, err)
			})
		}
		synctest.Wait()
		began := time.Now()
		for i := range 20 {
			_, err := do(ctx, g, in(1, set(fmt.Sprint("k", i), "v")))
			require.NoError(t, err)
		}
		pair := operation{Keys: []engine.Key{{DB: 1, Key: []byte("a")}, {DB: 1, Key: []byte("b")}}, Body: func(v *gather.View) error {
			v.Set(engine.Key{DB: 1, Key: []byte("a")}, nil, engine.Forever)
			return nil
		}}
		_, err = do(ctx, g, pair)
		require.NoError(t, err)
		require.Zero(t, time.Since(began), "nobody waited")
		require.EqualValues(t, 22, g.Stats().Queue)
		<-time.After(9 * time.Second)
		require.Zero(t, g.Stats().Silent, "it is a transaction that they wait for, and not the engine")
		began = time.Now()
		tx.Abort()
		work.Wait()
		require.Zero(t, time.Since(began))
		_, err = do(ctx, g, set("later", "v"))
		require.NoError(t, err)
	})
}

// Who has waited too long for a transaction is told so, and the engine is not taken for away.
func TestWhoWaitsForATransactionForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, mem.Options{}, gather.Options{})
		defer w.close()
		g, ctx := w.gathers[0], context.Background()
		tx, err := w.engines[1].Begin(ctx, 0)
		require.NoError(t, err)
		var work sync.WaitGroup
		for i := range 3 {
			work.Go(func() {
				<-time.After(time.Duration(i) * 4 * time.Second)
				_, err := do(ctx, g, set("k", "v"))
				require.Equal(t, engine.Undone, engine.KindOf(err))
				require.ErrorContains(t, err, "a transaction has had the database to itself for 10s: nothing was changed")
			})
		}
		work.Wait()
		require.False(t, g.Stats().Away)
		tx.Abort()
		_, err = do(ctx, g, appends("k", "v"))
		require.NoError(t, err)
		require.Equal(t, "v", w.value("k"))
	})
}

// An engine that goes away while somebody waits for a transaction is noticed.
func TestAnEngineGoesAwayBehindATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cable{hangs: true}
		w := newWorld(t, 2, mem.Options{Faults: c.fault}, gather.Options{})
		g, ctx := w.gathers[0], context.Background()
		tx, err := w.engines[1].Begin(ctx, 0)
		require.NoError(t, err)
		go func() { _, _ = do(ctx, g, set("k", "v")) }()
		<-time.After(5 * time.Second)
		c.out.Store(true)
		_, err = do(ctx, g, set("k", "v"))
		require.Error(t, err)
		<-time.After(time.Second)
		_, err = do(ctx, g, in(1, set("k", "v")))
		require.ErrorIs(t, err, gather.ErrAway)
		c.out.Store(false)
		tx.Abort()
		<-time.After(3 * time.Second)
		_, err = do(ctx, g, set("k", "w"))
		require.NoError(t, err)
		w.close()
	})
}

// Updates of one key are made in the order in which their caller brings them, while transactions of
// another server come and go: whether a few have to wait or many.
func TestOrderBehindTransactions(t *testing.T) {
	for _, group := range []int{2, 512} {
		w := newWorld(t, 2, mem.Options{Faults: func(mem.Call) mem.Fault { return mem.Fault{Delay: 20 * time.Microsecond} }}, gather.Options{Group: group})
		g, ctx := w.gathers[0], context.Background()
		stop := make(chan struct{})
		var work sync.WaitGroup
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
				}
				tx, err := w.engines[1].Begin(ctx, 0)
				require.NoError(t, err)
				<-time.After(100 * time.Microsecond)
				tx.Abort()
			}
		})
		var callers sync.WaitGroup
		for c := range 4 {
			callers.Go(func() {
				want := ""
				for n := range 20 {
					var ops []gather.Operation
					for i := range 10 {
						digit := string(rune('0' + (n+i)%10))
						stored := append(record.AppendXT(nil, engine.Forever), digit...)
						k := key(fmt.Sprint("k", c))
						ops = append(ops, gather.Operation{Keys: []engine.Key{k}, Updates: []ulog.Update{{Op: ulog.OpSet, Key: k.Key, Value: stored}}})
						want = digit
					}
					g.DoAll(ctx, ops, nil, func(_ int, _ gather.Outcome, err error) { require.NoError(t, err) })
					recs, err := g.Read(ctx, []engine.Key{key(fmt.Sprint("k", c))})
					require.NoError(t, err)
					require.Equal(t, want, string(recs[0].Value))
					_, err = do(ctx, g, appends(fmt.Sprint("sum", c), fmt.Sprint(n%10)))
					require.NoError(t, err)
				}
				require.Equal(t, "01234567890123456789", w.value(fmt.Sprint("sum", c)))
			})
		}
		callers.Wait()
		close(stop)
		work.Wait()
		w.close()
	}
}
