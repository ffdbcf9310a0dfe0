package gather_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
)

// While an engine makes no update, callers give up, and others come and give up in their turn. What
// they have brought does not stay.
func TestWhatWasAbandonedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{}
		w := s.world(t)
		defer w.close()
		s.on.Store(true)
		first := w.begin(set("a", "1"))
		for i := range 4 << 10 {
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error)
			go func() {
				_, err := do(ctx, w.gathers[0], set(fmt.Sprintf("%05d", i), string(make([]byte, 1000))))
				done <- err
			}()
			synctest.Wait()
			cancel()
			require.ErrorContains(t, <-done, "nothing was changed")
		}
		operations, bytes := w.gathers[0].Waiting()
		require.Less(t, operations, 2<<10)
		require.Zero(t, bytes)
		require.Error(t, first()[0].err)
	})
}

// An operation that changes nothing is answered by reads alone, and is no sign that updates are
// made again.
func TestAnOperationThatChangesNothingEndsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{fault: mem.Fault{Kind: engine.Unknown, Away: true}}
		w := s.world(t)
		defer w.close()
		w.fine(w.begin(set("a", "1")))
		s.on.Store(true)
		require.Error(t, w.begin(set("a", "2"))()[0].err)
		require.True(t, w.silent())
		_, err := do(context.Background(), w.gathers[0], operation{Keys: []engine.Key{key("none")}, Body: func(v *gather.View) error {
			v.Remove(key("none"))
			return nil
		}})
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, w.silent())
	})
}

// A large bulk does not wait for its whole time with each of its parts.
func TestABulkEndsWhereTheEngineIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{fault: mem.Fault{Delay: 1000 * time.Hour}}
		w := newWorld(t, 1, mem.Options{Faults: s.faults}, gather.Options{Queue: queueCalls, QueueBytes: queueBytes})
		defer w.close()
		w.fine(w.bulk(2*queueCalls, 20))
		s.on.Store(true)
		began := time.Now()
		all := w.bulk(2*queueCalls, 20)()
		require.Less(t, time.Since(began), 2*w.gathers[0].Timeout())
		for i, a := range all {
			require.Error(t, a.err, i)
		}
		require.Equal(t, engine.Undone, engine.KindOf(all[len(all)-1].err))
	})
}
