package db

import (
	"bytes"
	"gotycoon/db/record"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A large value that is stored from where it is survives like any other, in every kind of database.
func TestSetInPlace(t *testing.T) {
	dir := t.TempDir()
	exprs := []string{filepath.Join(dir, "a.kct"), filepath.Join(dir, "b.kch#opts=p"), ":", "%", "*"}
	c, err := Open(exprs, Options{})
	require.NoError(t, err)
	const size = 3 << 20
	value := bytes.Repeat([]byte("v"), size)
	room := func() []byte { return append(make([]byte, record.Headroom), value...) }
	var owed Pending
	for i := range exprs {
		d := c.DB(i)
		for _, key := range []string{"small", "large", string(bytes.Repeat([]byte("k"), 1000))} {
			require.NoError(t, d.Set(&owed, []byte(key), []byte("before"), record.Never))
			require.NoError(t, d.StoreInPlace(&owed, []byte(key), room(), record.XT(1<<20), record.Anyway))
		}
		n, err := d.SetBulk(&owed, []Record{{Key: []byte("x"), Value: []byte("y"), XT: record.Never}, {Key: []byte("bulk"), Value: value, Room: room(), XT: record.Never}}, false)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.NoError(t, d.Append(&owed, []byte("small"), []byte("end"), record.Never))
	}
	require.NoError(t, owed.Wait())
	check := func(d *DB) {
		for _, key := range []string{"large", string(bytes.Repeat([]byte("k"), 1000)), "bulk"} {
			got, xt, err := d.Get(nil, nil, []byte(key))
			require.NoError(t, err)
			require.True(t, bytes.Equal(value, got), key)
			require.Equal(t, key != "bulk" && !d.persistent(), xt < record.MaxXT)
		}
		got, _, err := d.Get(nil, nil, []byte("small"))
		require.NoError(t, err)
		require.True(t, bytes.Equal(append(bytes.Clone(value), "end"...), got))
	}
	for i := range exprs {
		check(c.DB(i))
	}
	require.NoError(t, c.Close())
	c, err = Open(exprs[:2], Options{})
	require.NoError(t, err)
	check(c.DB(0))
	check(c.DB(1))
	require.NoError(t, c.Close())
}
