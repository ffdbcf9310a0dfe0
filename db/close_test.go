package db

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/filestore"
	"gotycoon/internal/vfs"
)

// removals calls a function before each removal of a file.
type removals struct {
	vfs.FS
	before func(name string)
}

func (r removals) Remove(name string) error {
	r.before(name)
	return r.FS.Remove(name)
}

// A process that waits for a file opens its private log at once when it gets the file. Until the
// log is gone with its directory nobody gets it: what the other one wrote there meanwhile would go,
// too.
func TestPrivateLogGoesBeforeTheFileIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.kct")
	var names []string
	o := Options{FS: removals{vfs.OS{}, func(name string) {
		names = append(names, filepath.Base(name))
		_, err := filestore.Open(path, filestore.Options{TryLock: true})
		require.ErrorIs(t, err, filestore.ErrInUse, name)
	}}}
	c := mustOpen(t, o, path)
	mustSet(t, c.DB(0), "key", "value")
	require.NoError(t, c.Close())
	require.Contains(t, names, "a.kct.wal")
	require.Contains(t, names, "0000000001.ulog")

	c = mustOpen(t, Options{}, path)
	require.Equal(t, map[string]string{"key": "value"}, contents(t, c.DB(0)))
	require.NoError(t, c.Close())
}
