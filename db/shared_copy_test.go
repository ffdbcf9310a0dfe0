package db

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/engine/mem"
	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/db/record"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// writing is the type of Copies.Write.
type writing = func(path string, m filestore.Meta, records func(put func(key, value []byte) error) error) error

// withCopies opens databases in an engine of their own whose files are made in dir.
func withCopies(t *testing.T, dir string, o mem.Options, write writing, names ...string) *Catalog {
	t.Helper()
	e := mem.New(o).Server("a")
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return mustOpen(t, Options{Shared: e, SID: 1, Copies: Copies{Dir: dir, Write: write}}, names...)
}

// A command gets a file with the records of one moment, which a server opens as a database of its
// own. What the command leaves beside the file stays, and the file does not.
func TestACommandGetsAFileOfADatabaseInAnEngine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "commands")
	c := withCopies(t, dir, mem.Options{}, rebuild.Write, "x")
	d := c.DB(0)
	require.NoError(t, bulkOf(d, 1200, false))
	require.NoError(t, d.Set(nil, []byte("mortal"), []byte("soon"), record.XT(1<<30)))
	want := contents(t, d)
	_, dies, err := d.Get(nil, nil, []byte("mortal"))
	require.NoError(t, err)
	before := d.Stamp()
	saved := filepath.Join(dir, "saved.kct")
	require.NoError(t, d.Synchronize(true, func(path string, at ulog.Stamp) error {
		require.Equal(t, filepath.Join(dir, "x.kct"), path)
		require.WithinDuration(t, before.Time(), at.Time(), time.Minute)
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		require.NoError(t, d.Clear(nil)) // nobody waits for a command
		return copyFile(path, saved)
	}))
	require.NoFileExists(t, filepath.Join(dir, "x.kct"))
	require.NoError(t, c.Close())

	one := mustOpen(t, Options{}, saved).DB(0)
	require.Equal(t, want, contents(t, one))
	_, xt, err := one.Get(nil, nil, []byte("mortal"))
	require.NoError(t, err)
	require.Equal(t, dies, xt)
}

// Whatever fails, nothing is left behind, and the next command gets its file.
func TestNothingIsLeftOfACommandsFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "commands")
	full, fails := true, false
	var c *Catalog
	ends := atomic.Bool{}
	c = withCopies(t, dir, mem.Options{Faults: func(call mem.Call) (f mem.Fault) {
		if call.Name == mem.Scan && ends.Load() {
			c.EndCopies()
		}
		return f
	}}, func(path string, m filestore.Meta, records func(put func(key, value []byte) error) error) error {
		return rebuild.Write(path, m, func(put func(key, value []byte) error) error {
			return errors.Join(records(put), map[bool]error{true: syscall.ENOSPC}[full])
		})
	}, "x")
	d := c.DB(0)
	require.NoError(t, bulkOf(d, 10, false))
	command := func(string, ulog.Stamp) error {
		if fails {
			return errors.New("exit status 1")
		}
		return nil
	}
	require.ErrorIs(t, d.Synchronize(false, command), syscall.ENOSPC)
	full, fails = false, true
	require.ErrorIs(t, d.Synchronize(false, command), dberr.ErrPostproc)
	ends.Store(true)
	require.ErrorContains(t, d.Synchronize(false, command), "the server stops")
	ends.Store(false)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1) // the lock
	fails = false
	require.NoError(t, d.Synchronize(false, command))
	require.NoError(t, c.Close())
	require.NoDirExists(t, dir)
}

// Commands of one database come one after the other, those of others at the same time.
func TestCommandsOfADatabaseInAnEngineTakeTurns(t *testing.T) {
	c := withCopies(t, filepath.Join(t.TempDir(), "commands"), mem.Options{}, rebuild.Write, "x", "y")
	var running, calls atomic.Int32
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			require.NoError(t, c.DB(0).Synchronize(false, func(path string, _ ulog.Stamp) error {
				require.EqualValues(t, 1, running.Add(1))
				defer running.Add(-1)
				calls.Add(1)
				return c.DB(1).Synchronize(false, func(other string, _ ulog.Stamp) error {
					require.FileExists(t, path)
					require.FileExists(t, other)
					return nil
				})
			}))
		})
	}
	work.Wait()
	require.EqualValues(t, 4, calls.Load())
}

// A start removes the files that a killed server has left, and none of a server that runs, of
// scripts, or in a directory that is another user's.
func TestAStartRemovesTheFilesOfKilledCommands(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"x.kct", "x.kct.rebuild-0a1b2c3d", "casket.kch", "x.kct.00001755000000000000", "other.kct"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	names := func() (names []string) {
		names, err := vfs.OS{}.ReadDir(dir)
		require.NoError(t, err)
		return names
	}
	f, err := vfs.OS{}.OpenFile(filepath.Join(dir, copiesLock), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	require.NoError(t, vfs.OS{}.Lock(f, 0))
	c := withCopies(t, dir, mem.Options{}, rebuild.Write, "x", "casket.kch")
	require.Len(t, names(), 6)
	require.ErrorContains(t, c.DB(0).Synchronize(false, func(string, ulog.Stamp) error { return nil }), "in use by another server")
	require.NoError(t, f.Close())
	require.NoError(t, c.Close())

	withCopies(t, dir, mem.Options{}, rebuild.Write, "x", "casket.kch")
	require.ElementsMatch(t, []string{"x.kct.00001755000000000000", "other.kct"}, names())

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	c = withCopies(t, link, mem.Options{}, rebuild.Write, "x")
	require.ErrorContains(t, c.DB(0).Synchronize(false, func(string, ulog.Stamp) error { return nil }), "is no directory of this user")
	require.NoError(t, os.Chmod(dir, 0o770))
	c = withCopies(t, dir, mem.Options{}, rebuild.Write, "x")
	require.ErrorContains(t, c.DB(0).Synchronize(false, func(string, ulog.Stamp) error { return nil }), "other users can write")
}
