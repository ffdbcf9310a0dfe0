package ulog

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Values that the log refers to are in the file as copied ones are: among others, in groups of several, at the end, and while somebody
// reads.
func TestLargeValuesAreNotCopied(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	r, err := l.NewReader(0)
	require.NoError(t, err)
	large := func(key string, size int) Update {
		return Update{SID: 9, Op: OpSet, Key: []byte(key), Value: bytes.Repeat([]byte(key), size/len(key)), Stays: true}
	}
	var ups []Update
	for _, group := range [][]Update{
		{set("a"), large("b", referSize+10), {Op: OpRemove, Key: []byte("c")}, large("d", 3*referSize), large("ef", 2*referSize)},
		{set("g")},
		{large("h", 2*referSize)},
		{large("i", 100)},
		{{Op: OpSet, Key: nil, Value: make([]byte, 2*referSize), Stays: true}},
	} {
		s, err := l.Append(group)
		require.NoError(t, err)
		if len(group) == 1 {
			require.NoError(t, l.Wait(s))
		}
		require.Less(t, len(l.pending), 1<<16)
		ups = append(ups, group...)
	}
	entries, _ := tailed(t, r)
	require.Len(t, entries, len(ups))
	require.NoError(t, r.Close())
	require.NoError(t, l.Close())
	all, damage, _ := drain(t, dir, 0)
	require.Empty(t, damage)
	require.Equal(t, len(ups), len(all))
	for i := range all {
		require.True(t, string(AppendMessage(nil, &ups[i])) == all[i].msg, i)
	}
	require.NoError(t, mustOpen(t, dir, Options{}).Close())
}
