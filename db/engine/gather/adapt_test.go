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
)

// writers are the lanes that have written since somebody asked.
type writers struct {
	mu   sync.Mutex
	seen map[uint64]bool
}

func (w *writers) fault(c mem.Call) mem.Fault {
	if c.Name != mem.Write {
		return mem.Fault{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[c.Lane] = true
	return mem.Fault{Delay: time.Millisecond}
}

func (w *writers) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer clear(w.seen)
	return len(w.seen)
}

// Many operations get two lanes, few of them one again, and what one caller brings for a key stays
// in its order meanwhile.
func TestLanesFollowGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lanes := writers{seen: map[uint64]bool{}}
		w := newWorld(t, 1, mem.Options{Faults: lanes.fault}, gather.Options{Lanes: 2})
		defer w.close()
		round := func(callers, times int) {
			var work sync.WaitGroup
			for i := range callers {
				work.Go(func() {
					for n := range times {
						o := set(fmt.Sprint("k", i, "-", n), "x")
						_, err := do(context.Background(), w.gathers[0], o)
						require.NoError(t, err)
					}
				})
			}
			work.Wait()
		}
		round(60, 10)
		require.Equal(t, 1, lanes.count(), "of few operations")

		for n := range 4 { // the lanes that are used change within
			var ops []gather.Operation
			for i := range 300 {
				for _, value := range []string{"first", fmt.Sprint("last", n)} {
					o := set(fmt.Sprint("k", i), value)
					ops = append(ops, o.plain())
				}
			}
			w.gathers[0].DoAll(context.Background(), ops, nil, func(_ int, _ gather.Outcome, err error) { require.NoError(t, err) })
			for i := range 300 {
				require.Equal(t, fmt.Sprint("last", n), w.value(fmt.Sprint("k", i)))
			}
		}
		require.Equal(t, 2, lanes.count(), "of many operations")

		round(64, 150) // half of what a lane more is for
		lanes.count()
		round(64, 10)
		require.Equal(t, 1, lanes.count(), "of few operations again")
	})
}

// A group that takes long waits a little for callers who come again after the last one.
func TestLaneWaitsForCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &gate{}
		w := one(t, gate, mem.Options{}, gather.Options{})
		defer w.close()
		first := w.begin(set("a", "1"))
		other := w.begin(set("b", "1")) // waits for the next group
		first()
		time.Sleep(time.Millisecond) //lint:sleep the way to the caller and back, on a clock of the test
		again := w.begin(set("a", "2"))
		other()
		again()
		require.Equal(t, []int{1, 2}, w.groups())

		// all were answered together: the first of them waits for the others
		first, other = w.begin(set("a", "3")), nil
		time.Sleep(time.Millisecond / 2) //lint:sleep as above
		other = w.begin(set("b", "3"))
		first()
		other()
		require.Equal(t, []int{1, 2, 2}, w.groups())
	})
}

// A read waits for others while a request is under way: for a moment, or until there are many.
func TestReadsWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &gate{name: mem.Read}
		w := one(t, gate, mem.Options{}, gather.Options{})
		defer w.close()
		g := w.gathers[0]
		var work sync.WaitGroup
		read := func(keys ...engine.Key) {
			work.Go(func() {
				_, err := g.Read(context.Background(), keys)
				require.NoError(t, err)
			})
		}
		many := func(prefix string, n int) (keys []engine.Key) {
			for i := range n {
				keys = append(keys, key(fmt.Sprint(prefix, i)))
			}
			return keys
		}
		read(key("x"))
		work.Wait()

		read(many("many", 20)...)
		synctest.Wait()
		for _, k := range many("few", 5) {
			read(k)
		}
		synctest.Wait()
		require.EqualValues(t, 2, gate.calls.Load(), "five reads wait")
		time.Sleep(time.Millisecond) //lint:sleep their patience, on a clock of the test
		synctest.Wait()
		require.EqualValues(t, 3, gate.calls.Load(), "they go, as one")
		for _, k := range many("more", 64) {
			read(k)
		}
		synctest.Wait()
		require.Greater(t, gate.calls.Load(), int64(3), "so many do not wait")
		work.Wait()
	})
}

// Where one half of the callers is there when the other half is answered, and those do not come at
// once, nobody waits for them, but for a look now and then. Where they do come, they are let in.
func TestHalvesDoNotWaitForEachOther(t *testing.T) {
	looks := func(c *gather.Callers, answered, there, come int) (n int) {
		c.LetIn(answered, func() int {
			n++
			if n == 1 {
				return there
			}
			return there + come
		})
		return n
	}
	var behind, here gather.Callers
	few := 0
	for range 330 {
		if looks(&behind, 30, 34, 3) == 1 {
			few++
		}
		require.Greater(t, looks(&here, 30, 34, 30), 2)
	}
	require.InDelta(t, 316, few, 4)
	require.Greater(t, looks(&behind, 60, 2, 0), 2, "a few are there, and many were answered")
}
