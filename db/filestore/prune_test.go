package filestore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/ulog/update"
)

// removeKeys applies the removals of keys from ≤ i < to, where the last is the newest.
func removeKeys(s *Store, from, to int) {
	for i := from; i < to; i++ {
		s.Apply(update.Stamp(i+1), []update.Update{remove(fmt.Sprintf("%06d", i*7919%1_000_000))})
	}
}

// mergeWithout flushes and merges, and does not prune.
func mergeWithout(t *testing.T, s *Store) {
	t.Helper()
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	require.NoError(t, s.flushTo(s.freeze(), false, nil))
	for more := true; more; {
		var err error
		more, err = s.mergePiece(true)
		require.NoError(t, err)
	}
}

// Where there is much to look at a checkpoint does a part of it. Meanwhile removals come and go.
func TestRemovalsAreForgottenInParts(t *testing.T) {
	const limit, n, part = 100, 150, 30
	s := mustOpenLWW(t, filepath.Join(t.TempDir(), "v.kct"), 1<<30, limit)
	s.Apply(1, []update.Update{set("kept", "1")})
	removeKeys(s, 0, n)
	mergeWithout(t, s)
	require.EqualValues(t, n, s.Meta().Removals)
	require.NoError(t, s.removals.prune(part))
	require.Zero(t, s.Meta().Floor)
	parts, now := 1, n
	for ; s.removals.walk.begun(); parts++ {
		s.Apply(update.Stamp(now+1), []update.Update{set(fmt.Sprintf("%06d", (now-1)*7919%1_000_000), "back")})
		removeKeys(s, now+1, now+3)
		now += 3
		mergeWithout(t, s)
		floor := s.Meta().Floor
		require.NoError(t, s.removals.prune(part))
		require.LessOrEqual(t, floor, s.Meta().Floor)
		require.EqualValues(t, removalsIn(remembered(t, s)), s.Meta().Removals)
	}
	require.GreaterOrEqual(t, parts, 2*n/part, "two walks")
	require.Less(t, s.Meta().Removals, int64(limit))
	require.GreaterOrEqual(t, s.Meta().Removals, int64(limit/2))
	require.NoError(t, s.EachEntry(func(key []byte, e LastUpdate) {
		require.True(t, !e.Removed || e.Stamp > s.Meta().Floor, string(key))
	}, func() {}))
	_, found, err := s.Entry([]byte("kept"))
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, s.Close())
}

// More removals than one transaction takes.
func TestManyRemovalsAreForgotten(t *testing.T) {
	const limit, n = batchEntries, 2*batchEntries + 1000
	s := mustOpenLWW(t, filepath.Join(t.TempDir(), "v.kct"), 1<<30, limit)
	removeKeys(s, 0, n)
	require.NoError(t, s.Merge())
	require.EqualValues(t, limit/2, s.Meta().Removals)
	require.EqualValues(t, n-limit/2, s.Meta().Floor)
	require.Len(t, remembered(t, s), limit/2)
	require.False(t, s.removals.walk.begun())
	require.NoError(t, s.Close())
}
