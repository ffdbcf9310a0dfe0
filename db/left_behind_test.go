package db

import (
	"gotycoon/db/replay"
	"gotycoon/internal/vfs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A private log with updates stays where a copy of the file has gone on elsewhere and comes back:
// nobody else has them.
func TestAPrivateLogWithUpdatesStaysWhereACopyComesBack(t *testing.T) {
	dir, away := t.TempDir(), t.TempDir()
	path, copied := filepath.Join(dir, "a.kct"), filepath.Join(away, "a.kct")
	c := mustOpen(t, Options{}, path)
	mustSet(t, c.DB(0), "in both", "1")
	require.NoError(t, c.Close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, content, 0o644))

	c = mustOpen(t, Options{}, path)
	mustSet(t, c.DB(0), "only in the private log", "2")
	path = filepath.Join(image(t, dir), "a.kct")
	c.stopBackground()
	abandon(c)

	o := Options{LogDir: filepath.Join(away, "ulog")}
	for range 3 {
		c = mustOpen(t, o, copied)
		mustSet(t, c.DB(0), "elsewhere", "3")
		require.NoError(t, c.Close())
	}
	require.NoError(t, os.Rename(copied, path))
	c, said := saying(t, o, path)
	require.Contains(t, said, "left as it is")
	require.Equal(t, map[string]string{"in both": "1", "elsewhere": "3"}, contents(t, c.DB(0)))
	require.NoError(t, c.Close())
	p, complete := replay.Behind(vfs.OS{}, path+privateSuffix, 0, true, 0)
	require.True(t, complete)
	require.EqualValues(t, 1, p.Updates)
}
