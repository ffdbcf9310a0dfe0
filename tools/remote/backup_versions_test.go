package remote_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
)

// A backup as a file has the versions and the removals; a snapshot is the same with and without.
func TestBackupKeepsVersions(t *testing.T) {
	dir := t.TempDir()
	port := startServer(t, filepath.Join(dir, "ulog"), filepath.Join(dir, "f.kct#lww=true"))
	for _, args := range [][]string{{"clear"}, {"set", "a", "1"}, {"set", "b", "1"}, {"remove", "b"}} {
		r := command(t, "", append([]string{args[0], "-port", port}, args[1:]...)...)
		require.Zero(t, r.exit, r.stderr)
	}
	path := filepath.Join(dir, "backup.kct")
	said := backUp(t, port, path)
	require.Equal(t, "1", said["count"])
	f, err := rebuild.Open(path, false, true)
	require.NoError(t, err)
	defer f.Close()
	got := map[string]bool{}
	require.NoError(t, f.Versions(func(key []byte, e filestore.LastUpdate) error {
		require.Greater(t, e.Stamp, f.Meta().ClearedAt)
		got[string(key)] = e.Removed
		return nil
	}))
	require.Equal(t, map[string]bool{"a": false, "b": true}, got)
	require.True(t, f.Meta().LWW)
	require.NotZero(t, f.Meta().ClearedAt)
	require.EqualValues(t, 1, f.Meta().Removals)
	require.Equal(t, "1", backUp(t, port, filepath.Join(dir, "backup.ktss"))["count"])
}
