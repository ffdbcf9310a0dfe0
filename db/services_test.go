package db_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
)

// The services' database shares the update log, keeps its place in it whatever databases the
// command line names, and is out of the way of those.
func TestServicesDatabaseIsRecoveredFromTheSharedLog(t *testing.T) {
	dir := t.TempDir()
	o := db.Options{LogDir: filepath.Join(dir, "ulog"), SID: 1, Services: filepath.Join(dir, "services.kct")}
	first := filepath.Join(dir, "a.kct")
	c, err := db.Open([]string{first}, o)
	require.NoError(t, err)
	require.Equal(t, 1, c.Len())
	require.Nil(t, c.DB(1))
	require.Nil(t, c.Lookup("services.kct"))
	require.Same(t, c.Services(), c.Numbered(65534))
	require.Same(t, c.DB(0), c.Numbered(0))
	require.Nil(t, c.Numbered(1))
	require.Nil(t, c.DB(65534))
	for _, name := range []string{"services", "services.kct", "65534", o.Services} { // nothing that a protocol has leads there
		require.Nil(t, c.View.Lookup(name))
	}
	for i := -1; i <= 1<<16; i++ {
		require.NotSame(t, c.Services(), c.View.DB(i))
	}
	require.NoError(t, c.Services().Set(nil, []byte("k"), []byte("v"), record.Never))
	require.NoError(t, c.DB(0).Set(nil, []byte("k"), []byte("other"), record.Never))
	crashed := filepath.Join(t.TempDir(), "copy") // what a process that is killed now leaves behind
	require.NoError(t, os.CopyFS(crashed, os.DirFS(dir)))
	require.NoError(t, c.Close())

	o.LogDir, o.Services = filepath.Join(crashed, "ulog"), filepath.Join(crashed, "services.kct")
	c, err = db.Open([]string{filepath.Join(crashed, "a.kct"), ":"}, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	value, _, err := c.Services().Get(nil, nil, []byte("k"))
	require.NoError(t, err)
	require.Equal(t, "v", string(value))
	value, _, err = c.DB(0).Get(nil, nil, []byte("k"))
	require.NoError(t, err)
	require.Equal(t, "other", string(value))
}
