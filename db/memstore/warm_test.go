package memstore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// TestBulksAgreeWithAMap applies bulks to stores that are large enough to be warmed. The bulks have
// records of all sizes, removals, keys that come twice, and keys that begin alike.
func TestBulksAgreeWithAMap(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := k.open()
			defer s.Close() // always nil
			r := rand.New(rand.NewPCG(3, 4))
			want := map[string]string{}
			warmed := 0
			for round := range 400 {
				ups := someUpdates(r, 1+r.IntN(3*warmKeys), round/100%2 == 1)
				for _, u := range ups {
					if u.Op == update.OpSet {
						want[string(u.Key)] = string(u.Value)
					} else {
						delete(want, string(u.Key))
					}
				}
				if s.Size() >= warmFrom {
					warmed++
				}
				s.Apply(0, ups)
				if round%40 == 0 {
					checkStore(t, s)
				}
			}
			require.Greater(t, warmed, 200)
			checkStore(t, s)
			n, _ := s.Count()
			require.Equal(t, int64(len(want)), n)
			compareBulks(t, s, want)
		})
	}
}

// TestUpdatesOfWarmedKeysAgreeWithAMap changes a Tree with Update, which is told the keys, and
// compares what each change says was there before.
func TestUpdatesOfWarmedKeysAgreeWithAMap(t *testing.T) {
	r, tree, want := rand.New(rand.NewPCG(7, 8)), NewTree(), map[string]string{}
	defer tree.Free()
	warmed, in := 0, 0
	for round := range 300 {
		ups := someUpdates(r, 1+r.IntN(3*warmKeys), false)
		var keys [][]byte
		for _, u := range ups {
			keys = append(keys, u.Key)
		}
		if tree.Bytes() >= warmFrom {
			warmed++
		}
		tree.Update(keys, func(b *Batch) {
			if round == 150 {
				b.Clear()
				clear(want)
			}
			for i, u := range ups {
				old, existed := want[string(u.Key)]
				if i < len(tree.leaves) && tree.leaves[i] != 0 {
					in++
				}
				first, size, found := b.Put(i, u.Key, u.Value)
				require.Equal(t, existed, found)
				require.Equal(t, len(old), size)
				if len(old) > 0 {
					require.Equal(t, old[0], first)
				}
				want[string(u.Key)] = string(u.Value)
			}
		})
		if round%40 == 0 {
			checkTree(t, tree)
		}
	}
	require.Greater(t, warmed, 200)
	require.Greater(t, in, 10_000, "changes that knew their leaf")
	checkTree(t, tree)
	require.Equal(t, len(want), tree.Len())
	var keys [][]byte
	for key := range want {
		keys = append(keys, []byte(key), []byte(key+"?"))
	}
	got := map[string]string{}
	tree.LookBulk(keys, func(i int, value []byte) { got[string(keys[i])] = string(value) })
	require.Equal(t, want, got)
}

// someUpdates makes a bulk; with shrink, most of its updates remove records.
func someUpdates(r *rand.Rand, n int, shrink bool) []update.Update {
	ups := make([]update.Update, n)
	for i := range ups {
		key := fmt.Appendf(nil, "a key that begins like all others %05d", r.IntN(9000))
		if r.IntN(2) == 0 {
			key = fmt.Appendf(nil, "%04x", r.IntN(9000)*7%65536)
		}
		if r.IntN(50) == 0 {
			key = append(key, bytes.Repeat([]byte("long"), 100)...)
		}
		ups[i] = update.Update{Op: update.OpSet, Key: key, Value: bytes.Repeat([]byte{byte(i)}, r.IntN(300))}
		if shrink && r.IntN(4) > 0 || r.IntN(10) == 0 {
			ups[i] = update.Update{Op: update.OpRemove, Key: key}
		}
	}
	return ups
}

// compareBulks warms and gets all keys of want, and as many that do not exist.
func compareBulks(t *testing.T, s store.Store, want map[string]string) {
	var keys [][]byte
	for key := range want {
		keys = append(keys, []byte(key), []byte(key+"?"))
	}
	s.(store.Warmer).Warm(keys)
	for _, key := range keys {
		value, found, err := s.Get(nil, key, nil)
		require.NoError(t, err)
		expected, exists := want[string(key)]
		require.Equal(t, exists, found)
		require.Equal(t, expected, string(value))
	}
}

// TestWarmBesideChanges is for the race detector: readers warm what a writer changes, and in a
// Cache reading changes the records' links.
func TestWarmBesideChanges(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := k.open()
			defer s.Close() // always nil
			r := rand.New(rand.NewPCG(5, 6))
			for s.Size() < 2*warmFrom {
				s.Apply(0, someUpdates(r, 100, false))
			}
			reader := func(seed uint64) func() {
				r := rand.New(rand.NewPCG(seed, 0))
				return func() {
					var keys [][]byte
					for _, u := range someUpdates(r, 100, false) {
						keys = append(keys, u.Key)
					}
					s.(store.Warmer).Warm(keys)
					for _, key := range keys {
						_, _, err := s.Get(nil, key, nil)
						require.NoError(t, err)
					}
				}
			}
			beside(func() {
				for range 100 {
					s.Apply(0, someUpdates(r, 100, false))
				}
				s.Apply(0, []update.Update{{Op: update.OpClear}})
			}, reader(1), reader(2))
			checkStore(t, s)
		})
	}
}

func TestWarmOfAnEmptyStore(t *testing.T) {
	for _, k := range kinds {
		s := k.open()
		s.(store.Warmer).Warm([][]byte{{}, []byte("a")})
		require.NoError(t, s.Close())
	}
}
