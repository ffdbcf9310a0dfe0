package tsv_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/tsv"
)

func pairs(r *tsv.Rows) [][2]string {
	var list [][2]string
	for row := range r.All() {
		list = append(list, [2]string{string(row.Name), string(row.Value)})
	}
	return list
}

func TestRowsLastValueWins(t *testing.T) {
	var r tsv.Rows
	r.Add([]byte("b"), []byte("1"))
	r.Add([]byte("a"), []byte("2"))
	r.Add([]byte("b"), []byte("3"))
	r.Add([]byte("a"), []byte("4"))
	v, ok := r.Get("b")
	require.True(t, ok)
	require.Equal(t, "3", string(v))
	require.False(t, r.Has("c"))
	r.Sort()
	require.Equal(t, [][2]string{{"a", "4"}, {"b", "3"}}, pairs(&r))
	r.Reset(10)
	require.Zero(t, r.Len())
	require.False(t, r.Has("a"))
}

// Tables of several parts are as those of one part: sorted, without hidden rows, and encoded in the
// order of the encoded names.
func TestRowsOfSeveralParts(t *testing.T) {
	for _, size := range []int{4095, 4096, 4097, 8192, 10_000, 13_000} {
		random := rand.New(rand.NewPCG(1, uint64(size)))
		var r tsv.Rows
		want := map[string]string{}
		for i := range size {
			name, value := fmt.Sprintf("%x\x80\xff~%d", random.IntN(3*size), random.IntN(2)), fmt.Sprint(i)
			r.Add([]byte(name), []byte(value))
			want[name] = value
		}
		require.Equal(t, size, r.Len())
		for name, value := range want {
			got, ok := r.Get(name)
			require.True(t, ok)
			require.Equal(t, value, string(got))
			if random.IntN(100) > 0 {
				break
			}
		}
		require.False(t, r.Has("missing"))
		checkRoundTrip(t, &r, tsv.URL)
		checkRoundTrip(t, &r, tsv.Base64)
		r.Sort()
		require.Equal(t, len(want), r.Len())
		names := slices.Sorted(maps.Keys(want))
		for i, pair := range pairs(&r) {
			require.Equal(t, [2]string{names[i], want[names[i]]}, pair)
		}
		r.Reset(100)
		require.Zero(t, r.Len())
		r.Add([]byte("a"), []byte("b"))
		require.Equal(t, [][2]string{{"a", "b"}}, pairs(&r))
	}
}

// Rows that are hidden may be most of them: what is left is in fewer parts.
func TestRowsHideWholeParts(t *testing.T) {
	for _, names := range []int{1, 4096, 4097, 8192} {
		var r tsv.Rows
		for i := range 3*8192 + 5 {
			r.Add(fmt.Appendf(nil, "%06d", i%names), fmt.Append(nil, i))
		}
		r.Sort()
		require.Equal(t, names, r.Len())
		r.Add([]byte("z"), nil)
		list := pairs(&r)
		require.Len(t, list, names+1)
		require.Equal(t, "z", list[names][0])
		require.Equal(t, fmt.Sprintf("%06d", names-1), list[names-1][0])
	}
}
