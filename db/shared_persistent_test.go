package db

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine/mem"
	"gotycoon/db/rebuild"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// With ktopts=p records never expire, and each operation leaves the same stored bytes in an engine
// as in a database of the server's own. Other databases of the engine keep their expiration times.
func TestRecordsOfAPersistentDatabaseInAnEngine(t *testing.T) {
	dir := t.TempDir()
	c := withCopies(t, filepath.Join(dir, "commands"), mem.Options{}, rebuild.Write, "x#ktopts=p", "y")
	own := mustOpen(t, Options{}, "%#ktopts=p")
	require.Equal(t, "x", c.DB(0).Name())
	require.Same(t, c.DB(0), c.Lookup("x"))
	stored := func(d *DB) map[string]string {
		all := map[string]string{}
		require.NoError(t, d.store.Scan(store.Start{Edge: true}, func(key, value []byte) bool {
			all[string(key)] = string(value)
			return true
		}))
		return all
	}
	const past = record.XT(-1) // one second after 1970
	large := make([]byte, store.LargeValue+1)
	for i, d := range []*DB{own.DB(0), c.DB(0)} {
		require.True(t, d.Info().Persistent, i)
		require.NoError(t, d.Set(nil, []byte("set"), []byte("1"), past))
		require.NoError(t, d.Append(nil, []byte("set"), []byte("2"), past))
		require.NoError(t, d.Set(nil, []byte("large"), large, past))
		require.NoError(t, d.Set(nil, []byte("gone"), nil, past))
		require.NoError(t, d.Remove(nil, []byte("gone")))
		for _, atomic := range []bool{false, true} {
			_, err := d.SetBulk(nil, []Record{{Key: []byte("b1"), Value: []byte("v"), XT: past}, {Key: []byte("b2"), XT: past}}, atomic)
			require.NoError(t, err)
		}
		tx, err := d.Begin(nil, true)
		require.NoError(t, err)
		require.NoError(t, tx.DB().Append(nil, []byte("b2"), []byte("tx"), past))
		require.NoError(t, tx.Commit(nil))
		require.NoError(t, d.Vacuum(nil, 0))
		value, xt, err := d.Get(nil, nil, []byte("set"))
		require.NoError(t, err)
		require.Equal(t, "12", string(value))
		require.Equal(t, record.MaxXT, xt)
		size, _, err := d.Check(nil, []byte("large"))
		require.NoError(t, err)
		require.Equal(t, len(large), size)
	}
	require.Equal(t, stored(own.DB(0)), stored(c.DB(0)))
	require.Len(t, stored(c.DB(0)), 4)

	y := c.DB(1)
	require.NoError(t, y.Set(nil, []byte("k"), nil, past))
	_, _, err := y.Get(nil, nil, []byte("k"))
	require.Error(t, err, "it has expired")

	saved := filepath.Join(dir, "saved.kct")
	require.NoError(t, c.DB(0).Synchronize(false, func(path string, _ ulog.Stamp) error { return copyFile(path, saved) }))
	file := mustOpen(t, Options{}, saved)
	require.True(t, file.DB(0).Info().Persistent)
	require.Equal(t, stored(own.DB(0)), stored(file.DB(0)))
}
