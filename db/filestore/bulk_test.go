package filestore

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// bulkOf reads keys together and returns "key=value" for each that has a record.
func bulkOf(t *testing.T, s *Store, keys ...string) (got []string, done int) {
	t.Helper()
	var asked [][]byte
	for _, key := range keys {
		asked = append(asked, []byte(key))
	}
	done, err := s.GetBulk(asked, func(i int, value []byte) { got = append(got, keys[i]+"="+string(value)) })
	require.NoError(t, err)
	return got, done
}

// TestBulkSeesTheNewestLayer has a key in each layer of a store, and its removal above.
func TestBulkSeesTheNewestLayer(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "a.kct"), 1<<30)
	s.cp.stop()
	keys := []string{"packed", "tree", "run", "frozen", "active", "none"}
	at := update.Stamp(0)
	apply := func(ups ...update.Update) {
		at += update.Stamp(len(ups))
		s.Apply(at, ups)
	}
	large := strings.Repeat("x", 5000) // for a packed record
	apply(set("packed", "0"), set("tree", large), set("run", "0"), set("frozen", "0"), set("active", "0"), set("gone in run", "0"), set("gone in memory", "0"))
	require.NoError(t, s.Checkpoint())
	require.NoError(t, s.Merge())
	apply(set("run", "1"), set("frozen", "1"), set("active", "1"), remove("gone in run"))
	require.NoError(t, s.Checkpoint())
	apply(set("frozen", "2"), set("active", "2"), remove("gone in memory"))
	s.applyMu.Lock()
	s.freezeOverlay()
	s.applyMu.Unlock()
	apply(set("active", "3"))
	want := []string{"packed=0", "tree=" + large, "run=1", "frozen=2", "active=3"}
	got, done := bulkOf(t, s, append(keys, "gone in run", "gone in memory")...)
	require.Equal(t, want, got)
	require.Equal(t, len(keys)+2, done)
	got, _ = bulkOf(t, s, "active", "packed", "active", "", "packed")
	require.Equal(t, []string{"active=3", "packed=0", "active=3", "packed=0"}, got)

	apply(update.Update{Op: update.OpClear}, set("new", "4"))
	got, _ = bulkOf(t, s, append(keys, "new")...)
	require.Equal(t, []string{"new=4"}, got, "after a clear")
	require.NoError(t, s.Abandon())
}

// TestBulkStopsAtLargeValues wants bounded memory and a bounded transaction.
func TestBulkStopsAtLargeValues(t *testing.T) {
	for _, inFile := range []bool{false, true} {
		s := mustOpen(t, filepath.Join(t.TempDir(), "a.kct"), 1<<30)
		large, middling := strings.Repeat("l", store.LargeValue), strings.Repeat("m", store.LargeValue-100)
		ups, keys := []update.Update{set("a", "1"), set("b", large), set("c", "2")}, []string(nil)
		for i := range 40 {
			keys = append(keys, fmt.Sprint("k", i))
			ups = append(ups, set(keys[i], middling))
		}
		s.Apply(update.Stamp(len(ups)), ups)
		if inFile {
			require.NoError(t, s.Checkpoint())
		}
		got, done := bulkOf(t, s, "a", "b", "c")
		require.Equal(t, []string{"a=1"}, got)
		require.Equal(t, 1, done)
		_, done = bulkOf(t, s, "b")
		require.Equal(t, 0, done)
		got, done = bulkOf(t, s, keys...)
		require.Len(t, got, mostBulkBytes/len(middling)+1)
		require.Len(t, got, done)
		require.NoError(t, s.Abandon())
	}
}
