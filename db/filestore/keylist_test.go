package filestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
)

// keysOf returns the keys of a list.
func keysOf(t *testing.T, l keyList) (keys []string) {
	t.Helper()
	require.NoError(t, l.each(func(key []byte) error {
		keys = append(keys, string(key))
		return nil
	}))
	require.Equal(t, len(keys), l.len())
	return keys
}

// A count takes a part of the list, more keys come meanwhile, and the part comes back where the
// count has failed: no key is lost, twice there, or changed.
func TestKeyListsAgreeWithASlice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var list keyList
	var want []string
	add := func(n int) {
		for range n {
			key := strings.Repeat(fmt.Sprint(len(want)), r.IntN(60))
			if r.IntN(500) == 0 {
				key = strings.Repeat("long", 30_000)
			}
			list.add([]byte(key))
			want = append(want, key)
		}
	}
	for range 200 {
		add(r.IntN(300))
		size, most := list.size, r.IntN(300_000)
		var taken keyList
		taken, list = list.cut(most)
		require.Equal(t, size, taken.size+list.size)
		require.True(t, taken.size >= most || list.size == 0)
		first := keysOf(t, taken)
		require.Equal(t, want[:len(first)], first)
		if r.IntN(2) == 0 {
			add(r.IntN(300))
			list = taken.join(list)
		} else {
			want = want[len(first):]
		}
		require.Equal(t, len(want), list.len())
	}
	require.Equal(t, want, keysOf(t, list))
}

// Keys that were counted are not kept in memory by those that come later.
func TestCutKeysAreGivenBack(t *testing.T) {
	var list keyList
	for i := 0; i < 100_000 || len(list.pieces) == cap(list.pieces); i++ {
		list.add(fmt.Append(nil, i))
	}
	gone := weak.Make(&list.pieces[0][0])
	_, list = list.cut(list.size)
	list.add([]byte("later"))
	runtime.GC()
	require.Nil(t, gone.Value())
	require.Equal(t, []string{"later"}, keysOf(t, list))
}

func TestAKeyListStopsAtAnError(t *testing.T) {
	var list keyList
	for i := range 3 {
		list.add([]byte{byte(i)})
	}
	stop, seen := errors.New("stop"), 0
	require.ErrorIs(t, list.each(func([]byte) error {
		seen++
		return stop
	}), stop)
	require.Equal(t, 1, seen)
}
