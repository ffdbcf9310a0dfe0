package gather_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
)

// While there is no room each operation hears so, and then all go on.
func TestAnEngineThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		w := newWorld(t, 1, mem.Options{Faults: func(c mem.Call) (f mem.Fault) {
			if full.Load() && c.Name == mem.Write {
				f.Kind, f.Delay = engine.Full, time.Millisecond
			}
			return f
		}}, gather.Options{})
		defer w.close()
		var ops []operation
		for i := range 20 {
			ops = append(ops, set(strconv.Itoa(i), "v"))
		}
		for _, is := range []bool{false, true, false} {
			full.Store(is)
			for _, a := range w.begin(ops...)() {
				require.Equal(t, is, a.err != nil && engine.KindOf(a.err) == engine.Full, "%v", a.err)
			}
		}
	})
}

// Of a hundred callers who always come again nobody waits longer than the others, also where few
// fit into a group.
func TestCallersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 100
		w := one(t, new(gate), mem.Options{}, gather.Options{Group: 8})
		defer w.close()
		var turns [callers]int
		var work sync.WaitGroup
		until := time.Now().Add(10 * time.Second)
		for i := range callers {
			work.Go(func() {
				for time.Now().Before(until) {
					_, err := add(w.gathers[0], strconv.Itoa(i%7), 1)
					require.NoError(t, err)
					turns[i]++
				}
			})
		}
		work.Wait()
		require.InDelta(t, 1000*8/callers, slices.Min(turns[:]), 2)
		require.LessOrEqual(t, slices.Max(turns[:])-slices.Min(turns[:]), 2)
	})
}

// What one caller brings at once goes in as few groups as lanes, and in its order for each key.
func TestManyOperationsOfOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := against(t, 2, "0", gather.Options{})
		defer w.close()
		var ops []operation
		for n := range 50 {
			k := key(strconv.Itoa(n % 5))
			ops = append(ops, operation{Keys: []engine.Key{k}, Size: 100, Body: func(v *gather.View) error {
				before, _ := v.Read(k)
				v.Set(k, slices.Concat(before.Value, []byte{byte('a' + n/5)}), engine.Forever)
				return nil
			}})
		}
		go func() {
			synctest.Wait() // all of them wait behind the first
			close(r.begin)
		}()
		next := 0
		var plain []gather.Operation
		for i := range ops {
			plain = append(plain, ops[i].plain())
		}
		body := func(i int, v *gather.View) error { return ops[i].Body(v) }
		w.gathers[0].DoAll(context.Background(), plain, body, func(i int, o gather.Outcome, err error) {
			require.Equal(t, next, i)
			next++
			require.NoError(t, err)
			require.NotZero(t, o.Stamp)
		})
		require.Equal(t, 50, next)
		require.Equal(t, "0abcdefghij abcdefghij abcdefghij", w.value("0")+" "+w.value("3")+" "+w.value("4"))
		require.LessOrEqual(t, len(r.groups), 3, "the first operations, then all others, then those that have lost twice")
	})
}

// picky is an engine that refuses to read a key.
type picky struct{ *mem.Server }

func (p picky) Read(ctx context.Context, keys []engine.Key, how engine.Reading) ([]engine.Record, error) {
	if slices.ContainsFunc(keys, func(k engine.Key) bool { return string(k.Key) == "odd" }) {
		return nil, engine.Refuse("odd")
	}
	return p.Server.Read(ctx, keys, how)
}

// A key that the engine refuses to read takes nobody with it, and its operation does not wait.
func TestAReadThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mem.New(mem.Options{Faults: (&gate{name: mem.Write, delay: time.Millisecond}).fault}).Server("a")
		w := &world{T: t, engines: []*mem.Server{e}, gathers: []*gather.Gather{gather.New(picky{e}, gather.Options{Lanes: 1})}}
		defer w.close()
		began := time.Now()
		for i, a := range w.begin(set("first", "1"), increment("a"), increment("odd"), increment("b"))() {
			require.Equal(t, i == 2, a.err != nil && engine.KindOf(a.err) == engine.Refused, "%v", a.err)
		}
		require.Equal(t, "1 1", w.value("a")+" "+w.value("b"))
		require.Less(t, time.Since(began), time.Second)
		errs := make(chan error, 30)
		for i := range 30 {
			go func() {
				_, err := w.gathers[0].Read(context.Background(), []engine.Key{key([]string{"a", "odd", "b"}[i%3])})
				errs <- err
			}()
		}
		refused := 0
		for range 30 {
			if err := <-errs; err != nil {
				require.Equal(t, engine.Refused, engine.KindOf(err))
				refused++
			}
		}
		require.Equal(t, 10, refused)
	})
}

// A body that panics takes nobody with it but its caller, and changes nothing.
func TestABodyThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := one(t, &gate{name: mem.Write, delay: time.Millisecond}, mem.Options{}, gather.Options{Lanes: 1})
		defer w.close()
		first := w.begin(set("first", "1"))
		var work sync.WaitGroup
		for i := range 30 {
			work.Go(func() {
				k := key(strconv.Itoa(i))
				body := func(v *gather.View) error {
					if i%3 == 1 {
						panic("on purpose")
					}
					v.Set(k, []byte("v"), engine.Forever)
					return nil
				}
				defer func() { require.Equal(t, i%3 == 1, recover() != nil) }()
				_, err := do(context.Background(), w.gathers[0], operation{Keys: []engine.Key{k}, Body: body})
				require.NoError(t, err)
			})
		}
		work.Wait()
		first()
		require.Equal(t, "v - v", w.value("0")+" "+w.value("1")+" "+w.value("2"))
	})
}

// A caller whose time ends while the lane is about to have its body run leaves; nobody waits for
// the caller, whatever it finds first.
func TestCallersWhoLeaveWhenTheirTurnComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := one(t, &gate{name: mem.Read, delay: time.Millisecond}, mem.Options{}, gather.Options{})
		defer w.close()
		var made atomic.Int64
		var work sync.WaitGroup
		for i := range 200 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%8)*10*time.Millisecond)
			work.Go(func() {
				defer cancel()
				op := increment(strconv.Itoa(i % 5))
				switch _, err := do(ctx, w.gathers[0], op); {
				case err == nil:
					made.Add(1)
				default:
					require.NotEqual(t, engine.Refused, engine.KindOf(err))
				}
			})
		}
		work.Wait()
		sum := 0
		for i := range 5 {
			n, _ := strconv.Atoi(w.value(strconv.Itoa(i)))
			sum += n
		}
		require.GreaterOrEqual(t, sum, int(made.Load()))
		require.NotZero(t, made.Load())
	})
}
