package tsv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/httpapi/tsv"
)

func pairs(r *tsv.Rows) [][2]string {
	var list [][2]string
	for _, row := range r.List() {
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
