package gather_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
)

// A record that this server has changed is not read again, whatever has happened since, as long as
// it is the last one that has changed it.
func TestWhatIsKnownIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &gate{name: mem.Read}
		fails, late := false, false
		var w *world
		w = newWorld(t, 1, mem.Options{Faults: func(c mem.Call) mem.Fault {
			f := gate.fault(c)
			if c.Name == mem.Write && fails {
				fails, f.Kind = false, engine.Unknown
			}
			if c.Name == mem.Write && late {
				late = false
				w.engines[0].Reconnect()
			}
			return f
		}}, gather.Options{})
		defer w.close()
		sum := 0
		adds := func(reads int64, why string) {
			t.Helper()
			before := gate.calls.Load()
			for range 3 {
				got, err := add(w.gathers[0], "n", 1)
				sum++
				require.NoError(t, err)
				require.Equal(t, sum, got)
			}
			require.Equal(t, reads, gate.calls.Load()-before, why)
		}
		adds(1, "the first one reads")
		adds(0, "what is known")
		_, err := do(context.Background(), w.gathers[0], set("n", "10"))
		require.NoError(t, err)
		sum = 10
		adds(0, "of a set that was blind as well")
		fails = true
		adds(0, "a group had no answer")
		w.engines[0].Reconnect()
		adds(0, "a new connection")
		late = true // behind the look at what is known
		adds(0, "a new connection in the middle of a group")
		time.Sleep(time.Hour) //lint:sleep a long pause of the clients, on a clock of the test
		adds(0, "that was long ago")
		_, err = do(context.Background(), w.gathers[0], operation{Keys: []engine.Key{key("n")}, Blind: true, Body: func(v *gather.View) error {
			v.Remove(key("n"))
			return nil
		}})
		require.NoError(t, err)
		sum = 0
		adds(1, "it was removed")
		_, err = do(context.Background(), w.gathers[0], set("n", strings.Repeat(" ", 2000)))
		require.NoError(t, err)
		sum = 0
		adds(1, "large values are not kept")
	})
}

// What is known may be wrong by now. Whoever changes it finds that out, and so does who looks at it
// alone, or beside another one who changes it without a look.
func TestWhatIsKnownIsOld(t *testing.T) {
	errThere := errors.New("it is there")
	look := func(found *string) operation {
		return operation{Keys: []engine.Key{key("n")}, Body: func(v *gather.View) error {
			r, _ := v.Read(key("n"))
			*found = string(r.Value)
			return errThere
		}}
	}
	for name, test := range map[string]func(t *testing.T, w *world){
		"changed": func(t *testing.T, w *world) {
			sum, err := add(w.gathers[0], "n", 1)
			require.NoError(t, err)
			require.Equal(t, 101, sum)
		},
		"read": func(t *testing.T, w *world) {
			var found string
			_, err := do(context.Background(), w.gathers[0], look(&found))
			require.ErrorIs(t, err, errThere)
			require.Equal(t, "100", found)
		},
		"read beside a set": func(t *testing.T, w *world) {
			var found string
			answers := w.begin(increment("other"), look(&found), set("n", "7"))()
			require.ErrorIs(t, answers[1].err, errThere)
			require.NoError(t, answers[2].err)
			require.Equal(t, "100 7", found+" "+w.value("n"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, mem.Options{Faults: func(mem.Call) mem.Fault { return mem.Fault{Delay: time.Millisecond} }}, gather.Options{Lanes: 1})
				defer w.close()
				for _, name := range []string{"n", "other"} {
					_, err := add(w.gathers[0], name, 1)
					require.NoError(t, err)
				}
				_, err := do(context.Background(), w.gathers[1], set("n", "100"))
				require.NoError(t, err)
				test(t, w)
			})
		})
	}
}

// Where servers change the same records, guesses are wrong, and few are made.
func TestWrongGuessesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &gate{name: mem.Write}
		w := newWorld(t, 2, mem.Options{Faults: gate.fault}, gather.Options{})
		defer w.close()
		const turns = 300
		for n := range turns {
			sum, err := add(w.gathers[n%2], "n", 1)
			require.NoError(t, err)
			require.Equal(t, n+1, sum)
		}
		lost := w.gathers[0].Stats().Lost + w.gathers[1].Stats().Lost
		require.InDelta(t, 4, lost, 2)
		require.EqualValues(t, turns+lost, gate.calls.Load())

		// one of them goes on alone, and guesses again at last
		reads := w.gathers[0].Stats().Read
		for range 1500 {
			_, err := add(w.gathers[0], "n", 1)
			require.NoError(t, err)
		}
		before, _, _ := reads.Snapshot(1)
		for range 100 {
			_, err := add(w.gathers[0], "n", 1)
			require.NoError(t, err)
		}
		after, _, _ := reads.Snapshot(1)
		require.Equal(t, before, after)
	})
}

// What is known takes a limited room: that of the records which were changed last.
func TestRoomOfWhatIsKnown(t *testing.T) {
	g := gather.New(&void{}, gather.Options{Lanes: 1, Timeout: time.Hour})
	value := make([]byte, 1000)
	most := 0
	for n := range 60 {
		var ops []gather.Operation
		for i := range 1000 {
			ops = append(ops, gather.Operation{Keys: []engine.Key{key(strconv.Itoa(1000*n + i))}})
		}
		g.DoAll(context.Background(), ops, func(i int, v *gather.View) error {
			v.Read(ops[i].Keys[0])
			v.Set(ops[i].Keys[0], value, engine.Forever)
			return nil
		}, func(_ int, _ gather.Outcome, err error) { require.NoError(t, err) })
		records, _ := g.Known()
		most = max(most, records)
	}
	require.NoError(t, g.Close())
	records, bytes := g.Known()
	require.Less(t, bytes, 16<<20)
	require.Less(t, most, 2*(16<<20)/1160+10)
	require.Greater(t, records, 16<<20/1160)
}

// A value that has become shorter keeps no room that is not counted: otherwise each of a hundred
// thousand records could have a kilobyte for nothing.
func TestRoomOfValuesThatHaveShrunk(t *testing.T) {
	var heap [2]uint64
	for i, sizes := range [][]int{{1}, {1000, 1}} {
		g := gather.New(&void{}, gather.Options{Lanes: 1, Timeout: time.Hour})
		var ops []gather.Operation
		for n := range 20000 {
			ops = append(ops, gather.Operation{Keys: []engine.Key{key(strconv.Itoa(n))}})
		}
		for _, size := range sizes {
			g.DoAll(context.Background(), ops, func(i int, v *gather.View) error {
				v.Read(ops[i].Keys[0])
				v.Set(ops[i].Keys[0], make([]byte, size), engine.Forever)
				return nil
			}, func(_ int, _ gather.Outcome, err error) { require.NoError(t, err) })
		}
		records, _ := g.Known()
		require.NotZero(t, records)
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		heap[i] = stats.HeapAlloc
		require.NoError(t, g.Close())
	}
	require.Less(t, heap[1], heap[0]+8<<20)
}

// Servers that guess all the time, right or wrong, count exactly.
func TestGuessedIncrementsAreExact(t *testing.T) {
	eachSeed(t, 3, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			const each, names = 40, 4
			w := newWorld(t, 3, mem.Options{Faults: mem.Seeded(seed, gentle)}, patient)
			defer w.close()
			var work sync.WaitGroup
			var seen sync.Map
			for i, g := range w.gathers {
				g.AlwaysGuess()
				for j := range 4 {
					work.Go(func() {
						for n := range each {
							name := strconv.Itoa(i) // nearly always its own
							if n%8 == 0 {
								name = strconv.Itoa((i + j) % names)
							}
							sum, err := add(g, name, 1)
							require.NoError(t, err)
							_, twice := seen.LoadOrStore(fmt.Sprint(name, "=", sum), true)
							require.False(t, twice, "two increments have the sum %d", sum)
						}
					})
				}
			}
			work.Wait()
			sum, lost := 0, uint64(0)
			for n := range names {
				value, _ := strconv.Atoi(w.value(strconv.Itoa(n)))
				sum += value
			}
			for _, g := range w.gathers {
				lost += g.Stats().Lost
			}
			require.Equal(t, 3*4*each, sum)
			require.NotZero(t, lost)
		})
	})
}
