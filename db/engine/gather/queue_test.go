package gather_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
)

// Bounds of the tests: a small call has at most 256 bytes and two operations.
const queueBytes, queueCalls, smallBytes = 1 << 16, 512, 256

// of returns an operation that brings so many bytes.
func of(name string, size int) operation { return set(name, string(make([]byte, size-len(name)))) }

// bulk begins a DoAll, and returns when its operations wait, or were refused.
func (w *world) bulk(n, size int) (answers func() []answer) {
	ops, all, done := make([]gather.Operation, n), make([]answer, n), make(chan struct{})
	for i := range ops {
		op := of(fmt.Sprintf("bulk %05d", i), size)
		ops[i] = op.plain()
	}
	go func() {
		w.gathers[0].DoAll(context.Background(), ops, nil, func(i int, o gather.Outcome, err error) { all[i] = answer{o, err} })
		close(done)
	}()
	synctest.Wait()
	return func() []answer {
		<-done
		return all
	}
}

// fine finds that all operations were made.
func (w *world) fine(all ...func() []answer) {
	w.Helper()
	for _, answers := range all {
		for _, a := range answers() {
			require.NoError(w, a.err)
		}
	}
}

// busy finds that a call is refused at once.
func (w *world) busy(op operation) {
	w.Helper()
	_, err := do(context.Background(), w.gathers[0], op)
	require.ErrorIs(w, err, gather.ErrBusy)
}

// blocked runs a test while the engine makes no progress until the test waits for answers.
func blocked(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := one(t, new(gate), mem.Options{}, gather.Options{Queue: queueCalls, QueueBytes: queueBytes})
		test(w)
		w.close()
	})
}

// A call that is larger than the queue comes also while others wait, and keeps nobody out but
// others like it.
func TestAHugeCallKeepsNobodyOut(t *testing.T) {
	blocked(t, func(w *world) {
		first := w.begin(of("first", 10))
		huge := w.begin(of("huge", 2*queueBytes))
		w.busy(of("huge", 2*queueBytes))
		others := w.begin(of("small", smallBytes), of("a large one", queueBytes/2))
		_, err := w.gathers[0].Read(context.Background(), []engine.Key{key("first")})
		require.NoError(t, err)
		w.fine(first, huge, others)
		w.fine(w.begin(of("huge", 2*queueBytes)))
	})
}

// Where large calls have taken all the room, small ones have half as much of their own.
func TestSmallCallsHaveRoomOfTheirOwn(t *testing.T) {
	blocked(t, func(w *world) {
		large := w.begin(of("large", queueBytes/2), of("large", queueBytes/2), of("huge", queueBytes+1))
		w.busy(of("large", smallBytes+1))
		var small []func() []answer
		for range queueBytes / 2 / smallBytes {
			small = append(small, w.begin(of("small", smallBytes)))
		}
		w.busy(of("small", smallBytes))
		require.EqualValues(t, queueBytes*3/2+queueBytes+1, w.gathers[0].Stats().QueueBytes, "the bound")
		w.fine(append(small, large)...)
		small = nil
		for range queueBytes / smallBytes {
			small = append(small, w.begin(of("small", smallBytes)))
		}
		w.busy(of("small", smallBytes))
		w.busy(of("large", smallBytes+1))
		w.fine(small...)
	})
}

// The operations of a bulk are one call: a large one, however small each of them is.
func TestABulkIsOneCall(t *testing.T) {
	for _, c := range []struct{ n, size int }{{queueBytes / 4 / smallBytes, smallBytes}, {queueCalls / 4, 20}} {
		blocked(t, func(w *world) {
			var all []func() []answer
			for range 4 {
				all = append(all, w.bulk(c.n, c.size))
			}
			for _, a := range w.bulk(c.n, c.size)() {
				require.ErrorIs(t, a.err, gather.ErrBusy)
			}
			w.busy(of("large", smallBytes+1))
			small := w.begin(of("small", smallBytes), of("small", smallBytes))
			_, err := w.gathers[0].Read(context.Background(), []engine.Key{key("first")})
			require.NoError(t, err)
			w.fine(append(all, small)...)
		})
	}
}

// A bulk for which the queue has no room is made in parts, and leaves room for others.
func TestABulkThatIsLargerThanTheQueue(t *testing.T) {
	for _, size := range []int{20, 2 * smallBytes} {
		blocked(t, func(w *world) {
			bulks := []func() []answer{w.bulk(2*queueCalls+1, size), w.bulk(2*queueCalls+1, size)}
			require.LessOrEqual(t, w.gathers[0].Stats().Queue, int64(queueCalls)/2)
			require.LessOrEqual(t, w.gathers[0].Stats().QueueBytes, int64(queueBytes)/2)
			w.fine(append(bulks, w.begin(of("small", smallBytes), of("large", queueBytes/4)))...)
		})
	}
}
