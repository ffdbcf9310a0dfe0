package db

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/ulog"
)

// followOne stores an update of a master with a position.
func followOne(t *testing.T, d *DB, value, state string) {
	t.Helper()
	note := func(int) *ulog.Position { return &ulog.Position{DBID: d.index, State: []byte(state)} }
	require.NoError(t, d.Replicate(nil, []ulog.Update{setFrom(9, "key", stored(value))}, note))
}

// logModes runs a test with private logs and with a shared one; open opens databases in a
// directory.
func logModes(t *testing.T, test func(t *testing.T, open func(dir string, names ...string) *Catalog)) {
	t.Helper()
	for name, shared := range map[string]bool{"private logs": false, "shared log": true} {
		t.Run(name, func(t *testing.T) {
			test(t, func(dir string, names ...string) *Catalog {
				o := Options{SyncInterval: time.Hour, LogLimit: 400}
				if shared {
					o.LogDir = filepath.Join(dir, "ulog")
				}
				var exprs []string
				for _, name := range names {
					if name != ":" {
						name = filepath.Join(dir, name)
					}
					exprs = append(exprs, name)
				}
				return mustOpen(t, o, exprs...)
			})
		})
	}
}

// A position that a database came up with must not go back after the next crash: newer updates of
// clients here would be overwritten by older ones of the master that come again.
func TestThePositionOfAFileIsNotTakenBack(t *testing.T) {
	logModes(t, func(t *testing.T, open func(string, ...string) *Catalog) {
		dir := t.TempDir()
		c := open(dir, "a.kct")
		followOne(t, c.DB(0), "of the master", "position 1")
		require.NoError(t, c.SyncLogs())
		require.NoError(t, c.Remember([]byte("position 2"))) // heartbeats, or updates that are not for this database
		require.NoError(t, c.DB(0).Synchronize(false, nil))  // a checkpoint; nobody has waited for what was remembered
		dir = image(t, dir)

		c = open(dir, "a.kct")
		first := string(c.DB(0).info.Remembered)
		require.Equal(t, "position 2", first, "the file holds no note that its log has not")
		mustSet(t, c.DB(0), "key", "of a client, newer")
		require.NoError(t, c.SyncLogs())
		dir = image(t, dir)

		c = open(dir, "a.kct")
		require.Equal(t, first, string(c.DB(0).info.Remembered), "the position went back")
	})
}

// The position of a shared log came with updates of one file; a file that was checkpointed since
// knows an older one. The newer counts, also when that file leaves the log, and for a tool.
func TestThePositionOfALogCountsForEveryFile(t *testing.T) {
	dir := t.TempDir()
	two := func() *Catalog {
		return mustOpen(t, in(dir), filepath.Join(dir, "a.kct"), filepath.Join(dir, "b.kct"))
	}
	c := two()
	followOne(t, c.DB(0), "1", "position 1")
	followOne(t, c.DB(1), "2", "position 2")
	mustSet(t, c.DB(0), "by a client", "")
	require.NoError(t, c.DB(0).file.Checkpoint())
	dir = image(t, dir)

	tool := image(t, dir)
	o := Options{Offline: &Offline{Logs: []string{filepath.Join(tool, "ulog")}}}
	c = mustOpen(t, o, filepath.Join(tool, "a.kct"))
	require.Equal(t, "position 2", string(c.DB(0).info.Remembered), "for a tool")

	c = two()
	require.Equal(t, "position 2", string(c.DB(0).info.Remembered), "after a kill")
	followOne(t, c.DB(1), "3", "position 3")
	require.NoError(t, c.Close())
	c = mustOpen(t, Options{}, filepath.Join(dir, "a.kct"))
	require.Equal(t, "position 3", string(c.DB(0).info.Remembered), "without the log")
}

// A new segment repeats the position with a stamp that is greater than the position's own. It must
// not get in front of what a file knows that has come from elsewhere.
func TestARepeatedPositionIsNoNewerOne(t *testing.T) {
	logModes(t, func(t *testing.T, open func(string, ...string) *Catalog) {
		dir := t.TempDir()
		c := open(dir, "a.kct")
		followOne(t, c.DB(0), "1", "of another server")
		require.NoError(t, c.Close())
		theirs := filepath.Join(image(t, dir), "a.kct")

		dir = t.TempDir()
		c = open(dir, "b.kct")
		followOne(t, c.DB(0), "1", "of this one")
		dir = image(t, dir)
		require.NoError(t, copyFile(theirs, filepath.Join(dir, "a.kct")))
		for range 3 {
			c = open(dir, "b.kct", "a.kct")
			require.Equal(t, "of another server", string(c.DB(1).info.Remembered))
			for range 20 { // new segments
				mustSet(t, c.DB(0), "by a client", string(make([]byte, 100)))
			}
			dir = image(t, dir)
		}
	})
}

// A file that makes its log forget takes nothing from databases in memory of the same log.
func TestDatabasesInMemoryRememberWhatAFileMakesTheirLogForget(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, in(dir), ":")
	followOne(t, c.DB(0), "1", "position 1")
	require.NoError(t, c.Close())
	c = mustOpen(t, in(dir), ":", filepath.Join(dir, "new.kct"))
	require.Equal(t, "position 1", string(c.DB(0).info.Remembered))
	require.Empty(t, c.DB(1).info.Remembered)
}
