package script

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

// A call that has updated a database of the script's own has failed if the update cannot become
// durable.
func TestACallWithALostUpdateIsNoSuccess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script.lua")
	require.NoError(t, os.WriteFile(path, []byte("function store() own:set('key', 'value') return 0 end"), 0o600))
	served, err := db.Open([]string{"%"}, db.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, served.Close()) }()
	p := Load(Options{Path: path, Catalog: served.View, Workers: 1})
	defer func() { require.NoError(t, p.Close()) }()
	fs := faultfs.New(vfs.OS{})
	catalog, err := db.Open([]string{"%"}, db.Options{LogDir: t.TempDir(), FS: fs})
	require.NoError(t, err)
	defer func() { require.Error(t, catalog.Close()) }()
	s := p.states[0]
	s.l.SetGlobal("own", s.newDB(&handle{s: s, db: catalog.DB(0)}))
	call := func() int {
		return p.Call(nil, new(db.Pending), "store", func(func(_, _ []byte) bool) {}, func(_, _ []byte) {})
	}
	require.Equal(t, Success, call())
	fs.FailWrite(1, errors.New("the disk is gone"))
	require.Equal(t, Internal, call())
	require.Equal(t, Internal, call())
}
