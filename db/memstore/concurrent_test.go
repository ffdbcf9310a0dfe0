package memstore

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// beside runs work in goroutines of its own, each again and again, until main has returned.
func beside(main func(), work ...func()) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	for _, f := range work {
		wg.Go(func() {
			for !stop.Load() {
				f()
			}
		})
	}
	main()
	stop.Store(true)
	wg.Wait()
}

// group returns updates that set every key of a group to the same number, of varying size.
func group(number uint64) []update.Update {
	var ups []update.Update
	for i := range 8 {
		value := make([]byte, 8+number%5*200)
		binary.BigEndian.PutUint64(value, number)
		ups = append(ups, update.Update{Op: update.OpSet, Key: []byte(fmt.Sprint("group", i)), Value: value})
	}
	return ups
}

// A reader that has seen one update of an Apply sees all of them afterwards, also when they begin
// with a clear.
func TestApplyIsVisibleAtOnce(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := k.open()
			defer s.Close() // always nil
			s.Apply(0, group(0))
			beside(func() {
				for n := range uint64(3000) {
					ups := group(n)
					if n%10 == 0 {
						ups = append([]update.Update{{Op: update.OpSet}, {Op: update.OpClear}}, ups...)
					}
					s.Apply(0, ups)
				}
			}, func() { getGroup(t, s) }, func() { getGroup(t, s) })
		})
	}
}

// getGroup reads the group's keys in random order: numbers must not go down.
func getGroup(t *testing.T, s store.Store) {
	var last uint64
	for _, i := range rand.Perm(8) {
		value, found, _ := s.Get(nil, []byte(fmt.Sprint("group", i)), nil)
		if !found || binary.BigEndian.Uint64(value) < last {
			t.Errorf("half an Apply was visible")
			return
		}
		last = binary.BigEndian.Uint64(value)
	}
}

// A scan of a tree looks at one state.
func TestTreeScanSeesOneState(t *testing.T) {
	s := NewTreeStore()
	defer s.Close() // always nil
	s.Apply(0, group(0))
	beside(func() {
		for n := range uint64(3000) {
			s.Apply(0, group(n))
		}
	}, func() {
		numbers := map[uint64]int{}
		_ = s.Scan(store.Start{Edge: true}, func(_, value []byte) bool {
			numbers[binary.BigEndian.Uint64(value)]++
			return true
		})
		if len(numbers) != 1 {
			t.Errorf("a scan saw %v", numbers)
		}
	})
}

// However many records a scan looks at, changes come in between its pieces.
func TestLongScansLetChangesIn(t *testing.T) {
	for _, k := range kinds {
		for _, backward := range []bool{false, true} {
			s := k.open()
			if _, ordered := s.(*TreeStore); backward && !ordered {
				require.NoError(t, s.Close())
				continue
			}
			t.Run(fmt.Sprint(k.name, backward), func(t *testing.T) {
				const records = 20_000
				for i := range records {
					s.Apply(0, []update.Update{set(fmt.Sprintf("%06d", i), "v")})
				}
				var applied atomic.Bool
				var wg sync.WaitGroup
				visited, between := 0, false
				require.NoError(t, s.Scan(store.Start{Edge: true, Backward: backward}, func(key, _ []byte) bool {
					if visited++; visited == 1 {
						change := set(string(key), "w") // to what is locked now
						wg.Go(func() { s.Apply(0, []update.Update{change}); applied.Store(true) })
					}
					for end := time.Now().Add(200 * time.Microsecond); !applied.Load() && time.Now().Before(end); {
						runtime.Gosched()
					}
					between = between || visited < records && applied.Load()
					return true
				}))
				require.True(t, between, "the change has waited for the whole scan")
				require.Equal(t, records, visited)
				wg.Wait()
				require.NoError(t, s.Close())
			})
		}
	}
}

// Values read beside a writer are whole, and belong to their keys.
func TestGetsBesideChanges(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := k.open()
			defer s.Close() // always nil
			key := func(i int) string { return fmt.Sprintf("key%05d;", i) }
			get := func() {
				name := key(rand.IntN(2000))
				value, _, _ := s.Get(nil, []byte(name), nil)
				if strings.ReplaceAll(string(value), name, "") != "" {
					t.Errorf("%s has the value %q", name, value)
				}
			}
			beside(func() {
				for range 10000 {
					i := rand.IntN(2000)
					up := set(key(i), strings.Repeat(key(i), rand.IntN(100)))
					if rand.IntN(3) == 0 {
						up.Op = update.OpRemove
					}
					s.Apply(0, []update.Update{up})
				}
			}, get, get, func() { s.Size(); _, _ = s.Count() })
			checkStore(t, s)
		})
	}
}

// A scan in parts meets every record that exists all the time exactly once, whatever comes and goes
// beside it.
func TestScanInPartsBesideChanges(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := k.open()
			defer s.Close() // always nil
			var stay []string
			for i := range 2000 {
				stay = append(stay, fmt.Sprint("stay", i))
				s.Apply(0, []update.Update{set(stay[i], "")})
			}
			slices.Sort(stay)
			next := 0
			change := func() {
				up := set(fmt.Sprint("come", next%40000), "value")
				if next/40000%2 == 1 {
					up.Op = update.OpRemove
				}
				next++
				s.Apply(0, []update.Update{up})
			}
			beside(func() {
				for range 10 {
					got := scanInParts(s)
					slices.Sort(got)
					require.True(t, slices.Equal(stay, got), "%d of %d", len(got), len(stay))
				}
			}, change)
		})
	}
}

// scanInParts returns the keys that stay. It begins anew behind the last key after every few
// records.
func scanInParts(s store.Store) []string {
	var keys []string
	from := store.Start{Edge: true}
	for {
		n := 0
		_ = s.Scan(from, func(key, _ []byte) bool {
			from = store.Start{Key: append([]byte(nil), key...)}
			if strings.HasPrefix(string(key), "stay") {
				keys = append(keys, string(key))
			}
			n++
			return n < 300
		})
		if n < 300 {
			return keys
		}
	}
}

// Get and Scan beside Close find what is left.
func TestReadersBesideClose(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := k.open()
			beside(func() {
				for n := range 20 {
					for i := range 100 {
						s.Apply(0, []update.Update{set(fmt.Sprint(i), strings.Repeat("x", n*i))})
					}
					require.NoError(t, s.Close())
				}
			}, func() {
				_, _, _ = s.Get(nil, []byte("7"), nil)
			}, func() {
				_ = s.Scan(store.Start{Edge: true}, func(_, value []byte) bool { return len(value) < 1000 })
			})
		})
	}
}
