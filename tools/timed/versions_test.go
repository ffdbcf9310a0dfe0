package timed_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// remembered returns what a file remembers of keys, and what it says of itself.
func remembered(t *testing.T, path string) (map[string]filestore.LastUpdate, filestore.Meta) {
	t.Helper()
	require.True(t, strings.HasSuffix(succeed(t, "verify", path), "sound\n"))
	f, err := rebuild.Open(path, false, true)
	require.NoError(t, err)
	got := map[string]filestore.LastUpdate{}
	require.NoError(t, f.Versions(func(key []byte, e filestore.LastUpdate) error { got[string(key)] = e; return nil }))
	require.NoError(t, f.Close())
	return got, f.Meta()
}

// TestVersionsSurviveTheTools keeps versions through every command that makes a file anew.
func TestVersionsSurviveTheTools(t *testing.T) {
	dir := t.TempDir()
	path, empty, log := filepath.Join(dir, "a.kct"), filepath.Join(dir, "b.kct"), filepath.Join(dir, "ulog")
	c, err := db.Open([]string{empty + "#lww=true"}, db.Options{})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	c, err = db.Open([]string{path + "#lww=true"}, db.Options{LogDir: log, SID: 3})
	require.NoError(t, err)
	d := c.DB(0)
	never := []byte{255, 255, 255, 255, 255}
	require.NoError(t, d.Replicate(nil, []ulog.Update{
		{SID: 9, Op: ulog.OpSet, Key: []byte("before"), Value: never, Origin: ulog.Origin{Log: 5, Stamp: 40}},
		{SID: 9, Op: ulog.OpClear, Origin: ulog.Origin{Log: 5, Stamp: 41}},
		{SID: 9, Op: ulog.OpSet, Key: []byte("theirs"), Value: never, Origin: ulog.Origin{Log: 5, Stamp: 42}},
		{SID: 9, Op: ulog.OpRemove, Key: []byte("gone"), Origin: ulog.Origin{Log: 5, Stamp: 43}},
	}, nil, nil))
	require.NoError(t, d.Set(nil, []byte("ours"), []byte("1"), record.Never))
	ours := filestore.Version{Stamp: c.Log().Last(), SID: 3}
	if err := d.Remove(nil, []byte("no such")); !errors.Is(err, dberr.ErrNoRecord) {
		require.NoError(t, err)
	}
	noSuch := filestore.Version{Stamp: c.Log().Last(), SID: 3}
	require.NoError(t, c.Close())

	want := map[string]filestore.LastUpdate{
		"theirs": {Version: filestore.Version{Stamp: 42, SID: 9}}, "gone": {Version: filestore.Version{Stamp: 43, SID: 9}, Removed: true},
		"ours": {Version: ours}, "no such": {Version: noSuch, Removed: true},
	}
	check := func(path string) {
		t.Helper()
		got, m := remembered(t, path)
		require.Equal(t, want, got)
		require.True(t, m.LWW)
		if m.Format == 1 { // without runs, of which Removals knows nothing
			require.EqualValues(t, 2, m.Removals)
		}
		require.EqualValues(t, 41, m.ClearedAt)
		require.EqualValues(t, 9, m.ClearedBy)
	}
	check(path)
	succeed(t, "compact", path)
	check(path)
	saved := filepath.Join(dir, "saved.kct")
	succeed(t, "repair", path, saved)
	check(saved)
	succeed(t, "recover", "-ts", "0", empty, log)
	check(empty)
}
