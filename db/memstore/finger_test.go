package memstore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Keys that stand near the latest one are put without a way from the root. They must come to the
// same places as any others, whatever has become of the leaf meanwhile.
func TestPutsNearEachOtherAgreeWithAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tree := NewTree()
	defer tree.Free()
	want := map[string]string{}
	found, at := 0, 0
	for round := range 40_000 {
		if r.IntN(20) == 0 {
			at = r.IntN(3000)
		}
		// of different lengths, so that some have no byte behind the prefix of others' pages
		key := fmt.Sprintf("%0*d", 1+r.IntN(8), at+r.IntN(8))
		value := fmt.Sprintf("%*d", r.IntN(60), round)
		switch {
		case r.IntN(4) == 0 || round > 30_000:
			_, known := want[key]
			require.Equal(t, known, tree.Delete([]byte(key)))
			delete(want, key)
		case round == 15_000:
			tree.Free()
			clear(want)
		default:
			tree.Update(nil, func(b *Batch) {
				if tree.fingers.find([]byte(key)) != 0 {
					found++
				}
				_, size, existed := b.Put(0, []byte(key), []byte(value))
				before, known := want[key]
				require.Equal(t, known, existed)
				require.Equal(t, len(before), size)
			})
			want[key] = value
		}
		if round%1000 == 0 {
			checkTree(t, tree)
		}
	}
	checkTree(t, tree)
	require.Equal(t, len(want), tree.Len())
	for key, value := range want {
		got, known := tree.find([]byte(key))
		require.True(t, known)
		require.Equal(t, value, string(got))
	}
	require.Greater(t, found, 1000)
}

// A journal whose keys come in order, in front of the record of its state: both leaves are known,
// whatever page each of them is on.
func TestAJournalAndItsStateHaveFingers(t *testing.T) {
	tree := NewTree()
	defer tree.Free()
	found := 0
	const rounds = 5000
	for i := range rounds {
		for _, key := range []string{"quota state", fmt.Sprintf("quota journal %06d", i)} {
			tree.Update(nil, func(b *Batch) {
				if tree.fingers.find([]byte(key)) != 0 {
					found++
				}
				b.Put(0, []byte(key), fmt.Appendf(nil, "%06d", i))
			})
		}
	}
	checkTree(t, tree)
	require.Greater(t, found, 2*rounds*9/10)
}

// A round of a journal, and the record of its state, is not warmed: the fingers know both leaves.
func TestARoundOfAJournalHasFingers(t *testing.T) {
	tree := NewTree()
	defer tree.Free()
	want := map[string]string{}
	put := func(keys [][]byte, value string) (warmed int) {
		tree.Update(keys, func(b *Batch) {
			warmed = len(tree.leaves)
			for i, key := range keys {
				_, known := want[string(key)]
				_, _, existed := b.Put(i, key, []byte(value))
				require.Equal(t, known, existed)
				want[string(key)] = value
			}
		})
		return warmed
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 { // others, on both sides
		put([][]byte{fmt.Appendf(nil, "a%020d", r.Uint64()), fmt.Appendf(nil, "z%020d", r.Uint64())}, fmt.Sprintf("%0200d", 0))
	}
	const rounds, calls = 500, 20
	warmed := 0
	for round := range rounds {
		var keys [][]byte
		for i := range calls {
			keys = append(keys, fmt.Appendf(nil, "quota journal %06d", round*calls+i))
		}
		warmed += put(append(keys, []byte("quota state")), fmt.Sprintf("%d", round))
	}
	require.True(t, worthwhile(calls, tree.arena), "else nothing is warmed")
	require.Less(t, warmed, rounds*calls/4)
	var spread [][]byte
	for range calls {
		spread = append(spread, fmt.Appendf(nil, "a%020d", r.Uint64()))
	}
	require.Equal(t, calls, put(spread, "x"))
	checkTree(t, tree)
	require.Equal(t, len(want), tree.Len())
	for key, value := range want {
		got, known := tree.find([]byte(key))
		require.True(t, known)
		require.Equal(t, value, string(got))
	}
}
