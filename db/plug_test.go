package db

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/keymatch"
	"gotycoon/db/memstore"
	"gotycoon/db/plugged"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/db/store/storetest"
)

func TestFindEngine(t *testing.T) {
	for path, want := range map[string]bool{"ktplugdbvoid.so": true, "/no/such/dir/ktplugdbvoid.so": true, "./ktplugdbmap.so": true,
		"xktplugdbvoid.so": false, "ktplugdbvoid": false, "": false, "/ktplugdbvoid.so/x": false} {
		_, ok := plugged.Find(path)
		require.Equal(t, want, ok, path)
	}
}

func openPlugged(t *testing.T, file string, o Options, exprs ...string) *Catalog {
	t.Helper()
	e, ok := plugged.Find(file)
	require.True(t, ok)
	o.Engine = &e
	c, err := Open(exprs, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestThePluggedExpression(t *testing.T) {
	c := openPlugged(t, "ktplugdbvoid.so", Options{}, "alpha#ktopts=p#ktcapcnt=5#bnum=7", "/some/dir/beta.kch#bnum=7")
	rows, err := c.DB(0).Status(nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"type": "128", "path": "alpha#ktopts=p#ktcapcnt=5#bnum=7", "count": "0", "size": "0",
		"ktopts": "2", "ktcapcnt": "5", "ktcapsiz": "-1"}, rows)
	require.Equal(t, c.DB(1), c.Lookup("beta.kch#bnum=7"))
	require.Nil(t, c.Lookup("beta.kch"))
}

func TestTheVoidTakesUpdatesAlsoWhenReadOnly(t *testing.T) {
	d := openPlugged(t, "ktplugdbvoid.so", Options{ReadOnly: true}, "x").DB(0)
	require.NoError(t, d.Set(nil, []byte("a"), []byte("b"), record.Never))
	require.NoError(t, d.Add(nil, []byte("a"), []byte("b"), record.Never))
	require.ErrorIs(t, d.Remove(nil, []byte("a")), dberr.ErrNoRecord)
	require.ErrorIs(t, openPlugged(t, "ktplugdbmap.so", Options{ReadOnly: true}, "x").DB(0).Set(nil, nil, nil, record.Never), dberr.ErrReadOnly)
}

func TestTheVoidLogsUpdates(t *testing.T) {
	dir := t.TempDir()
	c := openPlugged(t, "ktplugdbvoid.so", Options{LogDir: dir, SID: 9}, "x")
	d := c.DB(0)
	require.NoError(t, d.Set(nil, []byte("foo"), []byte("bar"), record.Never))
	require.NoError(t, d.Append(nil, []byte("foo"), []byte("+"), record.Never))
	require.ErrorIs(t, d.Remove(nil, []byte("foo")), dberr.ErrNoRecord)
	require.Equal(t, []string{`9 0 a1 foo "\xff\xff\xff\xff\xffbar"`, `9 0 a1 foo "\xff\xff\xff\xff\xff+"`, `9 0 a2 foo ""`}, logged(t, c.Log()))
}

// An engine is a database like every other.
func TestOperationsOnAnEngine(t *testing.T) {
	d := openPlugged(t, "ktplugdbmap.so", Options{}, "x").DB(0)
	for _, key := range []string{"b", "a", "c"} {
		require.NoError(t, d.Set(nil, []byte(key), []byte("v"), record.Never))
	}
	require.ErrorIs(t, d.Add(nil, []byte("a"), nil, record.Never), dberr.ErrDuplicate)
	keys, err := keymatch.MatchPrefix(d, nil, nil, nil, -1, nil)
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("a"), []byte("b"), []byte("c")}, keys)
	cur := d.NewCursor()
	require.NoError(t, cur.JumpBack(nil))
	key, err := cur.GetKey(nil, false)
	require.NoError(t, err)
	require.Equal(t, "c", string(key))
	require.NoError(t, d.Set(nil, []byte("d"), nil, record.XT(-1)))
	_, _, err = d.Get(nil, nil, []byte("d"))
	require.ErrorIs(t, err, dberr.ErrNoRecord)
}

// The server's own tree passes what engines must.
func TestConformanceOfTheTree(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memstore.NewTreeStore() })
}
