package pg_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/pg"
)

// A transaction of another server holds up the updates of its database and nobody else's, and they
// are made promptly when it ends.
func TestUpdatesBehindATransaction(t *testing.T) {
	url := setUp(t)
	here, there := open(t, url, pg.Options{}), open(t, url, pg.Options{})
	defer here.Close()
	defer there.Close()
	g := gather.New(here, gather.Options{})
	defer g.Close()
	require.NoError(t, add(t.Context(), g, "n"))
	best := time.Hour
	for n := 0; n < 10 && best >= 100*time.Millisecond; n++ { // a machine may be busy for some of them
		x, err := there.Begin(t.Context(), 0)
		require.NoError(t, err)
		var work sync.WaitGroup
		for i := range 20 {
			work.Go(func() { require.NoError(t, add(context.Background(), g, fmt.Sprint("n", i))) })
		}
		require.Eventually(t, func() bool { return waitsForLock(t, there, 0) }, 15*time.Second, time.Millisecond)
		require.Eventually(t, func() bool { return g.Stats().Queue == 20 }, 15*time.Second, time.Millisecond)
		for i := range 20 {
			k := engine.Key{DB: 1, Key: fmt.Append(nil, "k", i)}
			_, err := g.Do(t.Context(), gather.Operation{Keys: []engine.Key{k}, Blind: true}, func(v *gather.View) error {
				v.Set(k, nil, engine.Forever)
				return nil
			})
			require.NoError(t, err)
		}
		require.EqualValues(t, 20, g.Stats().Queue)
		began := time.Now()
		x.Abort()
		work.Wait()
		best = min(best, time.Since(began))
	}
	t.Logf("20 increments were made within %v of the end of a transaction", best)
	require.Less(t, best, 100*time.Millisecond)
}

// waitsForLock reports whether somebody waits for a database's lock.
func waitsForLock(t *testing.T, e *pg.Engine, db uint16) bool {
	waits, err := e.Waits(t.Context(), db)
	require.NoError(t, err)
	return waits
}

// Neither do transactions keep updates from ever being made, though there is always one that waits
// for the next, nor updates transactions.
func TestNobodyStarvesBehindTransactions(t *testing.T) {
	url := setUp(t)
	here, there := open(t, url, pg.Options{}), open(t, url, pg.Options{})
	defer here.Close()
	defer there.Close()
	g := gather.New(here, gather.Options{})
	defer g.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var work sync.WaitGroup
	transactions, most := make([]int, 3), make([]time.Duration, 3)
	for i := range transactions {
		own := lane(t, there)
		work.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				x, err := there.Begin(context.Background(), 0)
				if !assertNoError(t, err) {
					return
				}
				most[i] = max(most[i], time.Since(began))
				k := key("n0")
				id := engine.GroupID{Lane: own, Seq: uint64(transactions[i] + 1)}
				_, err = x.Commit(context.Background(), &engine.Group{ID: id, Changes: []engine.Change{{Key: k, Value: []byte("0"), XT: engine.Forever}}})
				if !assertNoError(t, err) {
					return
				}
				transactions[i]++
			}
		})
	}
	var updates sync.WaitGroup
	slowest := make([]time.Duration, 16)
	for i := range slowest {
		updates.Go(func() {
			for range 10 {
				began := time.Now()
				assertNoError(t, add(context.Background(), g, fmt.Sprint("n", i%8)))
				slowest[i] = max(slowest[i], time.Since(began))
			}
		})
	}
	updates.Wait()
	stop()
	work.Wait()
	t.Logf("transactions: %v, longest waits %v; slowest updates: %v", transactions, most, slowest)
	for _, n := range transactions {
		require.Positive(t, n)
	}
}

func assertNoError(t *testing.T, err error) bool {
	if err != nil {
		t.Errorf("%v", err)
	}
	return err == nil
}

// Transactions and snapshots, however many are open, keep nobody from a lease, a lane, the clock or
// updates. Those that are too many are told so, and the engine is not taken for away.
func TestOpenTransactionsAndSnapshots(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{Lease: 6 * time.Second})
	defer e.Close()
	g := gather.New(e, gather.Options{Timeout: 3 * time.Second})
	defer g.Close()
	_, _, err := e.Count(t.Context(), 20) // makes its tables, which takes a slow machine some time
	require.NoError(t, err)
	_, lost, err := e.Leases().Hold(t.Context(), "lease")
	require.NoError(t, err)
	for i := range 8 {
		x, err := e.Begin(t.Context(), uint16(i))
		require.NoError(t, err)
		defer x.Abort()
	}
	for range 6 {
		s, err := e.Snapshot(t.Context(), 0)
		require.NoError(t, err)
		defer s.Close()
	}
	_, err = gather.Ask(t.Context(), g, func(ctx context.Context) (engine.Tx, error) { return e.Begin(ctx, 20) })
	require.ErrorIs(t, err, engine.ErrCrowded)
	_, err = gather.Ask(t.Context(), g, func(ctx context.Context) (engine.Snapshot, error) { return e.Snapshot(ctx, 0) })
	require.ErrorIs(t, err, engine.ErrCrowded)
	require.False(t, g.Stats().Away)
	n, err := e.Lane(t.Context())
	require.NoError(t, err)
	require.NotZero(t, n)
	awaitRenewals(t, direct(t, url), "lease", lost)
	k := engine.Key{DB: 30, Key: []byte("k")}
	_, err = g.Do(t.Context(), gather.Operation{Keys: []engine.Key{k}, Blind: true}, func(v *gather.View) error {
		v.Set(k, nil, engine.Forever)
		return nil
	})
	require.NoError(t, err)
}
