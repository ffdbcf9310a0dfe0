package db

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/ulog"
)

// What is remembered is what belongs to the data: after a kill, after a clean close, and when a
// file goes over to another log.
func TestWhatIsRememberedStaysWithTheData(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			dir := t.TempDir()
			open := func(dir string, shared bool) (*Catalog, *DB) {
				o := Options{CheckpointSize: 16 << 10}
				if shared {
					o = in(dir)
				}
				c := mustOpen(t, o, filepath.Join(dir, "a.kct"))
				return c, c.DB(0)
			}
			c, d := open(dir, shared)
			require.Nil(t, d.info.Remembered)
			for i := range 300 {
				ups := []ulog.Update{setFrom(9, fmt.Sprint(i, " a"), stored("v")), {SID: 9, Op: ulog.OpClear}, setFrom(9, fmt.Sprint(i), stored("v"))}
				require.NoError(t, d.Replicate(nil, ups, func(n int) *ulog.Position { return &ulog.Position{State: fmt.Appendf(nil, "%d.%d", i, n)} }))
				if i%60 == 7 {
					_, after := open(image(t, dir), shared)
					require.Equal(t, fmt.Sprint(i, ".3"), string(after.info.Remembered))
					require.Len(t, contents(t, after), 1)
				}
			}
			require.NoError(t, c.Remember([]byte("last")))
			require.NoError(t, c.SyncLogs())
			_, after := open(image(t, dir), shared)
			require.Equal(t, "last", string(after.info.Remembered))
			require.NoError(t, c.Close())
			c, d = open(dir, shared)
			require.Equal(t, "last", string(d.info.Remembered))
			require.NoError(t, c.Close())
			c, d = open(dir, !shared)
			require.Equal(t, "last", string(d.info.Remembered))
			require.NoError(t, c.Close())
		})
	}
}

// A file that does not have everything that its log remembers keeps its own position, through
// whatever comes before the log remembers something new.
func TestAFileThatIsBehindItsLogKeepsItsPosition(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			dir := t.TempDir()
			open := func(names ...string) *Catalog {
				o := Options{LogLimit: 200}
				if shared {
					o = in(dir)
				}
				o.AsIs = true // an older copy beside a private log
				for i := range names {
					names[i] = filepath.Join(dir, names[i])
				}
				return mustOpen(t, o, names...)
			}
			follow := func(c *Catalog, state string) {
				for i := range c.Len() {
					note := func(int) *ulog.Position { return &ulog.Position{DBID: uint16(i), State: []byte(state)} }
					require.NoError(t, c.DB(i).Replicate(nil, []ulog.Update{setFrom(9, state, stored("v"))}, note))
				}
			}
			requireAt := func(c *Catalog, states ...string) {
				t.Helper()
				for i, state := range states {
					require.Equal(t, state, string(c.DB(i).info.Remembered), c.DB(i).path())
				}
			}
			c := open("a.kct", "b.kct")
			follow(c, "early")
			require.NoError(t, c.DB(0).file.Checkpoint())
			require.NoError(t, copyFile(filepath.Join(dir, "a.kct"), filepath.Join(dir, "backup")))
			follow(c, "late")
			require.NoError(t, c.DB(0).file.Checkpoint())
			dir = image(t, dir)
			require.NoError(t, copyFile(filepath.Join(dir, "backup"), filepath.Join(dir, "a.kct")))
			for range 3 { // kills
				c = open("a.kct", "b.kct", "new.kct")
				requireAt(c, "early", "late", "")
				mustSet(t, c.DB(0), "by a client", "1")
				dir = image(t, dir)
			}
			for range 2 { // clean ends
				c = open("a.kct", "b.kct", "new.kct")
				requireAt(c, "early", "late", "")
				mustSet(t, c.DB(1), "by a client", "1")
				require.NoError(t, c.Close())
			}
			c = open("a.kct", "b.kct", "new.kct")
			require.NoError(t, c.Remember([]byte("all")))
			require.NoError(t, c.SyncLogs())
			dir = image(t, dir)
			requireAt(open("a.kct", "b.kct", "new.kct"), "all", "all", "all")
		})
	}
}

// A tool that brings a file up to date from the server's log takes over what that remembers, too.
func TestAToolTakesOverWhatTheLogRemembers(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, in(dir), filepath.Join(dir, "a.kct"))
	for i := range 10 {
		note := func(int) *ulog.Position { return &ulog.Position{State: fmt.Append(nil, "at ", i)} }
		require.NoError(t, c.DB(0).Replicate(nil, []ulog.Update{setFrom(9, "k", stored("v"))}, note))
	}
	dir = image(t, dir)
	o := Options{Offline: &Offline{Logs: []string{filepath.Join(dir, "ulog")}}}
	require.NoError(t, mustOpen(t, o, filepath.Join(dir, "a.kct")).Close())
	c = mustOpen(t, in(dir), filepath.Join(dir, "a.kct"))
	require.Len(t, contents(t, c.DB(0)), 1)
	require.Equal(t, "at 9", string(c.DB(0).info.Remembered))
}
