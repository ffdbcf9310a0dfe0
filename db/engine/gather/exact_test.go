package gather_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// rough is an engine in bad shape: of ten calls two fail or get no answer, and some groups arrive
// after their writers have given up.
var rough = mem.Rates{Undone: 0.1, Unknown: 0.1, Delay: 0.3, Longest: 20 * time.Millisecond}

// gentle is one where lanes often know what they have changed: whatever fails makes them forget it.
var gentle = mem.Rates{Undone: 0.02, Unknown: 0.02, Delay: 0.3, Longest: 20 * time.Millisecond}

// patient is a Gather whose operations never give up.
var patient = gather.Options{Timeout: 1000 * time.Hour}

// Many callers of three servers add to few keys. Every increment counts once, whatever the engine
// does, and each caller sees sums that nobody else has seen.
func TestIncrementsAreExact(t *testing.T) {
	var lost, made, undone uint64
	eachSeed(t, 5, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			for _, s := range increments(t, seed) {
				lost, made, undone = lost+s.Lost, made+s.SettledMade, undone+s.SettledUndone
			}
		})
	})
	require.True(t, lost > 0 && made > 0 && undone > 0, "%d lost, %d were made without an answer, %d were not", lost, made, undone)
}

func increments(t *testing.T, seed uint64) (stats []gather.Stats) {
	const callers, each, names = 12, 25, 3
	w := newWorld(t, 3, mem.Options{Faults: mem.Seeded(seed, rough)}, patient)
	defer w.close()
	var work sync.WaitGroup
	var seen sync.Map
	for i := range 3 * callers {
		work.Go(func() {
			for n := range each {
				name := strconv.Itoa((i + n) % names)
				sum, err := add(w.gathers[i%3], name, 1)
				require.NoError(t, err)
				_, twice := seen.LoadOrStore(fmt.Sprint(name, "=", sum), true)
				require.False(t, twice, "two increments have the sum %d", sum)
			}
		})
	}
	work.Wait()
	for _, g := range w.gathers {
		stats = append(stats, g.Stats())
	}
	for n := range names {
		require.Equal(t, strconv.Itoa(3*callers*each/names), w.value(strconv.Itoa(n)))
	}
	return stats
}

// Money goes from account to account, over all lanes and servers. Its sum never changes, also for
// those who look at all accounts at once. Whoever would overdraw an account finds that out.
func TestTransfersKeepTheSum(t *testing.T) {
	eachSeed(t, 3, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { transfers(t, seed) })
	})
}

func transfers(t *testing.T, seed uint64) {
	const accounts, each = 6, 30
	w := newWorld(t, 3, mem.Options{Faults: mem.Seeded(seed, rough)}, patient)
	defer w.close()
	ctx := context.Background()
	var all []engine.Key
	for n := range accounts {
		all = append(all, key(strconv.Itoa(n)))
		_, err := do(ctx, w.gathers[0], set(strconv.Itoa(n), "10"))
		require.NoError(t, err)
	}
	errPoor := errors.New("not enough")
	var poor, rich atomic.Int64
	var work sync.WaitGroup
	for i, g := range w.gathers {
		for j := range 4 {
			dice := rand.New(rand.NewPCG(uint64(i), uint64(j)))
			work.Go(func() {
				for range each {
					from, to, n := dice.IntN(accounts), dice.IntN(accounts-1), dice.IntN(8)
					if to >= from {
						to++
					}
					_, err := do(ctx, g, operation{Keys: []engine.Key{all[from], all[to]}, Body: func(v *gather.View) error {
						if read(v, all[from]) < n {
							return errPoor
						}
						addTo(v, all[from], -n)
						addTo(v, all[to], n)
						return nil
					}})
					if errors.Is(err, errPoor) {
						poor.Add(1)
					} else {
						require.NoError(t, err)
						rich.Add(1)
					}
				}
			})
		}
		work.Go(func() {
			for range each {
				recs, err := g.Read(ctx, all)
				require.NoError(t, err)
				sum := 0
				for _, r := range recs {
					n, err := strconv.Atoi(string(r.Value))
					require.NoError(t, err)
					require.GreaterOrEqual(t, n, 0)
					sum += n
				}
				require.Equal(t, 10*accounts, sum)
			}
		})
	}
	work.Wait()
	require.NotZero(t, poor.Load())
	require.NotZero(t, rich.Load())
}

// Of two people who are on call, each may leave as long as the other one stays: whoever reads one
// record and changes another one depends on both.
func TestWhatWasReadCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, mem.Options{Faults: mem.Seeded(3, mem.Rates{Delay: 0.9, Longest: time.Millisecond})}, patient)
		defer w.close()
		both := []engine.Key{key("alice"), key("bob")}
		for range 50 {
			for _, k := range both {
				_, err := do(context.Background(), w.gathers[0], set(string(k.Key), "on call"))
				require.NoError(t, err)
			}
			var work sync.WaitGroup
			for i, g := range w.gathers {
				work.Go(func() {
					_, err := do(context.Background(), g, operation{Keys: both, Body: func(v *gather.View) error {
						if _, there := v.Read(both[1-i]); there {
							v.Remove(both[i])
						}
						return nil
					}})
					require.NoError(t, err)
				})
			}
			work.Wait()
			left := 0
			for _, name := range []string{"alice", "bob"} {
				if w.value(name) != "-" {
					left++
				}
			}
			require.Equal(t, 1, left)
		}
	})
}

// A record that one operation of a whole group makes and the next one removes is not there
// afterwards, though another server has stored it in between.
func TestWhatIsMadeAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, mem.Options{Faults: func(c mem.Call) mem.Fault {
			if c.Server == "0" && c.Name == mem.Write {
				return mem.Fault{Delay: 10 * time.Millisecond}
			}
			return mem.Fault{}
		}}, gather.Options{})
		defer w.close()
		k, other := key("k"), key("other")
		both := func(change func(v *gather.View)) operation {
			return operation{Keys: []engine.Key{k, other}, Body: func(v *gather.View) error {
				change(v)
				addTo(v, other, 1)
				return nil
			}}
		}
		answers := w.begin(
			operation{Keys: []engine.Key{key("a"), key("b")}, Blind: true, Body: func(v *gather.View) error {
				v.Set(key("a"), nil, engine.Forever)
				return nil
			}},
			both(func(v *gather.View) { v.Set(k, []byte("made"), engine.Forever) }),
			both(func(v *gather.View) { v.Remove(k) }),
		)
		<-time.After(15 * time.Millisecond) // the second group is on its way
		_, err := do(context.Background(), w.gathers[1], set("k", "of another server"))
		require.NoError(t, err)
		for _, a := range answers() {
			require.NoError(t, a.err)
		}
		require.Equal(t, "- 2", w.value("k")+" "+w.value("other"))
	})
}

// Operations on several keys meet other servers and other lanes of their own on hot keys, and
// still come to their turn soon: after three losses the engine holds their keys.
func TestNobodyStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trip := func(c mem.Call) mem.Fault { return mem.Fault{Delay: time.Millisecond} }
		w := newWorld(t, 3, mem.Options{Faults: trip}, patient)
		defer w.close()
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		var work sync.WaitGroup
		for i, g := range w.gathers {
			for range 4 {
				work.Go(func() {
					for n := i; ctx.Err() == nil; n++ { // always somebody who writes
						_, err := add(g, strconv.Itoa(n%2), 1)
						require.NoError(t, err)
					}
				})
			}
		}
		both, longest := []engine.Key{key("0"), key("1")}, time.Duration(0)
		for range 100 {
			began := time.Now()
			_, err := do(ctx, w.gathers[0], operation{Keys: both, Body: func(v *gather.View) error {
				addTo(v, both[0], 1)
				addTo(v, both[1], -1)
				return nil
			}})
			require.NoError(t, err)
			longest = max(longest, time.Since(began))
		}
		stop()
		work.Wait()
		require.NotZero(t, w.gathers[0].Stats().Held)
		require.Less(t, longest, 40*time.Millisecond, "three losses, and then a hold behind those of two other servers")
	})
}
