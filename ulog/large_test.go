package ulog

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

// Values that the log refers to are in the file as copied ones are: among others, in groups of
// several, at the end, and while somebody reads.
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
		require.Less(t, len(l.pending.buf), 1<<16)
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

// What came before a large value is acknowledged before the value is written, and what comes behind
// it afterwards.
func TestALargeValueHasAGroupOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{SyncInterval: time.Hour})
	large := Update{Op: OpSet, Key: []byte("large"), Value: make([]byte, referSize), Stays: true}
	var stamps []Stamp
	for _, ups := range [][]Update{{set("a")}, {set("b")}, {large}, {set("c")}, {set("d"), large, set("e")}, {set("f")}} {
		s, err := l.Append(ups)
		require.NoError(t, err)
		stamps = append(stamps, s)
	}
	require.NoError(t, l.Wait(stamps[5]))
	require.Zero(t, l.pending.referTo)
	require.NoError(t, l.Close())
	require.Equal(t, stamps[1:], groupEnds(t, dir), "a and b together, the others by themselves")
	require.Equal(t, []string{"a", "b", "large", "c", "d", "large", "e", "f"}, readKeys(t, dir))
}

// groupEnds returns the stamps that the groups of a log's first segment end with.
func groupEnds(t *testing.T, dir string) (ends []Stamp) {
	t.Helper()
	path := filepath.Join(dir, segmentName(1))
	f, err := vfs.OS{}.OpenFile(path, readOnly, 0)
	require.NoError(t, err)
	defer f.Close()
	head, err := readHeader(f)
	require.NoError(t, err)
	s := scanner{win: window{f: f}, path: path, head: head, off: headerSize}
	for err == nil {
		if err = s.next(head.size); err == nil {
			ends = append(ends, s.last)
		}
	}
	require.ErrorIs(t, err, io.EOF)
	return ends[1:] // the segment begins with an empty group
}

// A full segment with much that is not on the disk yet grows on while it is synced, and nobody
// waits.
func TestNobodyWaitsForALargeValueToBeSynced(t *testing.T) {
	dir, fs := t.TempDir(), faultfs.New(vfs.OS{})
	l := mustOpen(t, dir, Options{FS: fs, Limit: quickSync, SyncInterval: time.Hour})
	release := make(chan struct{})
	fs.OnSync(func() { <-release })
	s, err := l.Append([]Update{{Op: OpSet, Key: []byte("large"), Value: make([]byte, quickSync), Stays: true}})
	require.NoError(t, err)
	require.NoError(t, l.Wait(s))
	mustCommit(t, l, keys("k", 100)...)
	require.EqualValues(t, 1, l.writer.end().seg)
	close(release)
	within(t, "it is synced", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.synced.last >= s
	})
	mustCommit(t, l, "z")
	require.EqualValues(t, 2, l.writer.end().seg)
	require.NoError(t, l.Close())
	require.Len(t, readKeys(t, dir), 102)
}
