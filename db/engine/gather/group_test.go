package gather_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
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

// one is a server whose operations on one key share one lane. Its writes, or whatever the gate
// names, take 10 ms: what comes meanwhile is the next group.
func one(t *testing.T, gate *gate, m mem.Options, o gather.Options) *world {
	gate.delay = 10 * time.Millisecond
	if gate.name == "" {
		gate.name = mem.Write
	}
	m.Faults, o.Lanes = gate.fault, 1
	return newWorld(t, 1, m, o)
}

// answer is what a caller has heard.
type answer struct {
	gather.Outcome
	err error
}

// begin begins operations, one after the other, and returns when all of them wait. The answers come
// in their order.
func (w *world) begin(ops ...operation) (answers func() []answer) {
	channels := make([]chan answer, len(ops))
	for i, op := range ops {
		channels[i] = make(chan answer, 1)
		go func() {
			o, err := do(context.Background(), w.gathers[0], op)
			channels[i] <- answer{o, err}
		}()
		synctest.Wait()
	}
	return func() (all []answer) {
		for _, c := range channels {
			all = append(all, <-c)
		}
		return all
	}
}

// groups returns how many updates each group of the log has.
func (w *world) groups() (sizes []int) {
	groups, _, err := w.engines[0].Log().Read(context.Background(), 0, 1<<30)
	require.NoError(w, err)
	for _, g := range groups {
		sizes = append(sizes, len(g.Updates))
	}
	return sizes
}

func increment(name string) operation {
	k := key(name)
	return operation{Keys: []engine.Key{k}, Body: func(v *gather.View) error {
		addTo(v, k, 1)
		return nil
	}}
}

// Ten increments of one key that come together are one read, one change and ten updates.
func TestWhatMeetsOnAKeyIsOneChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gate gate
		w := one(t, &gate, mem.Options{}, gather.Options{SID: 7})
		defer w.close()
		first := w.begin(set("n", "5"))
		var ops []operation
		var read []uint64
		for range 10 {
			op := increment("n")
			body := op.Body
			op.Body = func(v *gather.View) error {
				r, _ := v.Read(key("n"))
				read = append(read, r.Revision)
				return body(v)
			}
			ops = append(ops, op)
		}
		rest := w.begin(ops...)()
		require.Less(t, read[0], engine.Replaced)
		require.Equal(t, slices.Repeat([]uint64{engine.Replaced}, 9), read[1:])
		require.NoError(t, first()[0].err)
		require.Equal(t, "15", w.value("n"))
		require.Equal(t, []int{1, 10}, w.groups())
		require.EqualValues(t, 2, gate.calls.Load())
		groups, upTo, err := w.engines[0].Log().Read(context.Background(), 0, 1<<20)
		require.NoError(t, err)
		require.EqualValues(t, 7, groups[1].Updates[9].SID)
		require.Equal(t, "15", string(groups[1].Updates[9].Value[record.XTSize:]))
		for i, a := range rest {
			require.NoError(t, a.err)
			require.Equal(t, upTo, a.Stamp)
			require.Equal(t, i < 9, a.Revision == engine.Replaced, "only the last of them has made what is there")
		}
	})
}

// A set needs no read, and the other way round an operation that changes nothing no write.
func TestOnlyWhatIsNeededIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gate gate
		w := one(t, &gate, mem.Options{}, gather.Options{})
		defer w.close()
		_, err := do(context.Background(), w.gathers[0], set("k", "1"))
		require.NoError(t, err)
		require.EqualValues(t, 2, gate.seen.Load(), "a number for the lane, and a write")
		_, err = do(context.Background(), w.gathers[0], operation{Keys: []engine.Key{key("k")}, Body: func(v *gather.View) error {
			v.Read(key("k"))
			return nil
		}})
		require.NoError(t, err)
		require.EqualValues(t, 3, gate.seen.Load(), "a read")
		_, err = do(context.Background(), w.gathers[0], operation{Keys: []engine.Key{key("none")}, Body: func(v *gather.View) error {
			v.Remove(key("none"))
			return nil
		}})
		require.NoError(t, err)
		require.EqualValues(t, 4, gate.seen.Load())
		require.Equal(t, []int{1}, w.groups(), "the removal of nothing is not logged")
	})
}

// Groups have a size, and the operations that do not fit wait.
func TestGroupsHaveASize(t *testing.T) {
	for _, c := range []struct {
		options gather.Options
		limits  engine.Limits
		size    int // of a value
		want    []int
	}{
		{gather.Options{}, engine.Limits{}, 1, []int{1, 10}},
		{gather.Options{Group: 4}, engine.Limits{}, 1, []int{1, 4, 4, 2}},
		{gather.Options{GroupBytes: 305}, engine.Limits{}, 100, []int{1, 3, 3, 3, 1}},
		{gather.Options{GroupBytes: 50}, engine.Limits{}, 100, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{gather.Options{}, engine.Limits{Key: 100, Value: 1000, Changes: 3, Bytes: 10000}, 100, []int{1, 3, 3, 3, 1}},
		{gather.Options{}, engine.Limits{Key: 100, Value: 1000, Changes: 100, Bytes: 505}, 100, []int{1, 5, 5}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := one(t, new(gate), mem.Options{Limits: c.limits}, c.options)
			defer w.close()
			ops := []operation{set("first", "1")}
			for i := range 10 {
				ops = append(ops, set(strconv.Itoa(i), strings.Repeat("v", c.size)))
			}
			for _, a := range w.begin(ops...)() {
				require.NoError(t, a.err)
			}
			require.Equal(t, c.want, w.groups(), "%+v", c)
		})
	}
}

// An operation that the engine refuses takes nobody with it.
func TestARefusedOperationStandsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := engine.Limits{Key: 10, Value: 100, Changes: 4, Bytes: 300}
		w := one(t, new(gate), mem.Options{Limits: limits}, gather.Options{})
		defer w.close()
		answers := w.begin(set("first", "1"), set("a", "1"), set("long", strings.Repeat("v", 101)), set("b", "1"), set(strings.Repeat("k", 11), ""), set("c", "1"))()
		for i, a := range answers {
			if i == 2 || i == 4 {
				require.Equal(t, engine.Refused, engine.KindOf(a.err), "%v", a.err)
				require.ErrorContains(t, a.err, "the engine keeps ")
			} else {
				require.NoError(t, a.err)
			}
		}
		require.Equal(t, "1 1 1", w.value("a")+" "+w.value("b")+" "+w.value("c"))
		_, err := do(context.Background(), w.gathers[0], operation{Keys: make([]engine.Key, 5)})
		require.EqualError(t, err, "the engine changes at most 4 records in one step")
	})
}

// Operations on several keys share groups, but for those that have to stand alone. Those on one key
// do not wait for them.
func TestTheBroadLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := one(t, new(gate), mem.Options{}, gather.Options{})
		defer w.close()
		a, b := key("a"), key("b")
		both := operation{Keys: []engine.Key{b, a}, Body: func(v *gather.View) error {
			addTo(v, a, 1)
			addTo(v, b, 2)
			return nil
		}}
		lease, lost, err := w.engines[0].Leases().Hold(t.Context(), "follow")
		require.NoError(t, err)
		follow := operation{
			Keys: []engine.Key{a, key("c")}, Blind: true, Guard: &lease, Position: &ulog.Position{State: []byte("here")},
			Body: func(v *gather.View) error {
				v.Apply(&ulog.Update{SID: 9, Op: ulog.OpSet, Key: []byte("a"), Value: append(record.AppendXT(nil, engine.Forever), '7'), Origin: ulog.Origin{Log: 5, Stamp: 6}})
				v.Apply(&ulog.Update{SID: 9, Op: ulog.OpRemove, Key: []byte("c")})
				return nil
			},
		}
		clear := operation{Clear: &engine.Clear{Log: []ulog.Update{{Op: ulog.OpClear}}}}
		began := time.Now()
		broad := w.begin(both, both, both, follow, both, clear)
		narrow := w.begin(set("c", "1"))
		require.NoError(t, narrow()[0].err)
		require.Equal(t, 10*time.Millisecond, time.Since(began))
		for _, one := range broad() {
			require.NoError(t, one.err)
			require.NotZero(t, one.Stamp)
		}
		require.Equal(t, "-", w.value("a"))
		groups, _, err := w.engines[0].Log().Read(context.Background(), 0, 1<<20)
		require.NoError(t, err)
		var sizes []int
		for _, g := range groups {
			sizes = append(sizes, len(g.Updates))
		}
		require.ElementsMatch(t, []int{2, 1, 4, 2, 2, 1}, sizes)
		require.Equal(t, "here", string(groups[3].Position.State))
		require.Equal(t, ulog.Origin{Log: 5, Stamp: 6}, groups[3].Updates[0].Origin)
		require.Equal(t, ulog.OpRemove, groups[3].Updates[1].Op)

		require.NoError(t, w.engines[0].Close())
		<-lost
		_, err = do(context.Background(), w.gathers[0], follow)
		require.ErrorIs(t, err, engine.ErrFenced)
	})
}
