package db

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/gate"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
	"gotycoon/ulog"
)

// backup is what a snapshot of a database in memory holds.
type backup struct {
	stored map[string]string
	at     ulog.Stamp
}

func takeBackup(t *testing.T, d *DB) backup {
	t.Helper()
	f, err := d.Freeze()
	require.NoError(t, err)
	b := backup{map[string]string{}, f.Stamp()}
	require.NoError(t, f.Scan(func(key, value []byte) error { b.stored[string(key)] = string(value); return nil }))
	require.NoError(t, f.Close())
	return b
}

// restore opens what a kill at this moment leaves of the log and the files, and brings back the
// database in memory.
func (b backup) restore(t *testing.T, dir string, index int, exprs func(dir string) []string) *Catalog {
	t.Helper()
	after := image(t, dir)
	c := mustOpen(t, in(after), exprs(after)...)
	require.NoError(t, c.DB(index).Load(fillWith(b.stored)))
	require.NoError(t, c.RollForward(map[int]ulog.Stamp{index: b.at}))
	return c
}

// Clients go on writing while a snapshot is written for a removal, to it and to a file. What comes
// after its instant is only in the log, and is not removed with the rest.
func TestRemovalKeepsWhatSnapshotsLack(t *testing.T) {
	exprs := func(dir string) []string { return []string{":", filepath.Join(dir, "a.kct")} }
	for _, upTo := range []ulog.Stamp{1 << 62, ulog.Stamp(1<<64 - 1)} {
		dir := t.TempDir()
		o := in(dir)
		o.LogLimit = 4 << 10
		c := mustOpen(t, o, exprs(dir)...)
		var b backup
		c.BeforeRemoval(func(ulog.Stamp) error {
			b = takeBackup(t, c.DB(0))
			for i := range 300 {
				mustSet(t, c.DB(i%2), fmt.Sprintf("during %03d", i), strings.Repeat("v", 50))
			}
			return nil
		})
		for i := range 100 {
			mustSet(t, c.DB(i%2), fmt.Sprintf("before %03d", i), strings.Repeat("v", 50))
		}
		require.NoError(t, c.RemoveLogFiles(upTo))
		after := b.restore(t, dir, 0, exprs)
		for i := range 2 {
			require.Equal(t, contents(t, c.DB(i)), contents(t, after.DB(i)))
		}
		files, err := after.LogFiles()
		require.NoError(t, err)
		require.NotContains(t, files[0].Path, "0000000001.ulog", "what is not needed is removed")
	}
}

// Who cannot move on keeps what it needs, and the error is told. The others move on all the same.
func TestWhoCannotMoveOnKeepsTheLog(t *testing.T) {
	exprs := func(dir string) []string {
		return []string{":", filepath.Join(dir, "a.kct"), filepath.Join(dir, "b.kch")}
	}
	dir := t.TempDir()
	o := in(dir)
	o.LogLimit = 1
	c := mustOpen(t, o, exprs(dir)...)
	mustSet(t, c.DB(0), "a", "1", "b", "2")
	b := takeBackup(t, c.DB(0))
	hold := c.Log().Hold(ulog.Holder{Kind: ulog.Snapshot, What: "the snapshot of :"}, b.at)
	full := errors.New("no space left on device")
	c.BeforeRemoval(func(ulog.Stamp) error { return full })
	for i := range 3 {
		mustSet(t, c.DB(i), "c", "3", "d", "4")
	}
	require.ErrorIs(t, c.RemoveLogFiles(1<<62), full)
	after := b.restore(t, dir, 0, exprs)
	for i := range 3 {
		require.Equal(t, contents(t, c.DB(i)), contents(t, after.DB(i)))
	}
	require.GreaterOrEqual(t, c.DB(2).hold.From(), b.at)

	c.BeforeRemoval(func(upTo ulog.Stamp) error {
		b = takeBackup(t, c.DB(0))
		hold.Advance(b.at)
		return nil
	})
	require.NoError(t, c.RemoveLogFiles(1<<62))
	files, err := c.LogFiles()
	require.NoError(t, err)
	require.Len(t, files, 1)
	after = b.restore(t, dir, 0, exprs)
	for i := range 3 {
		require.Equal(t, contents(t, c.DB(i)), contents(t, after.DB(i)))
	}
}

// A file that is only read finds the newest updates in the log at each start.
func TestRemovalKeepsWhatAReadOnlyFileLacks(t *testing.T) {
	dir := t.TempDir()
	o := in(dir)
	o.LogLimit = 1
	c := mustOpen(t, o, filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "a", "1", "b", "2", "c", "3")
	want := contents(t, c.DB(0))
	dir = image(t, dir)
	for range 2 {
		o := in(dir)
		o.ReadOnly = true
		c := mustOpen(t, o, filepath.Join(dir, "a.kct"))
		require.Equal(t, want, contents(t, c.DB(0)))
		require.NoError(t, c.RemoveLogFiles(1<<62))
		require.NoError(t, c.Close())
	}
}

// Whoever makes a copy can follow the log from the copy's stamp as long as it is under way.
func TestCopiesKeepTheLog(t *testing.T) {
	dir := t.TempDir()
	o := in(dir)
	o.LogLimit = 1
	c := mustOpen(t, o, filepath.Join(dir, "a.kct"), ":")
	for i := range 2 {
		f, err := c.DB(i).Freeze()
		require.NoError(t, err)
		mustSet(t, c.DB(i), "a", "1", "b", "2", "c", "3")
		require.NoError(t, c.RemoveLogFiles(1<<62))
		r, err := c.Log().NewReader(f.Stamp())
		require.NoError(t, err)
		e, err := r.Next()
		require.NoError(t, err)
		u, err := ulog.ParseMessage(e.Message)
		require.NoError(t, err)
		require.Equal(t, "a", string(u.Key))
		require.NoError(t, r.Lost())
		require.NoError(t, r.Close())
		require.NoError(t, f.Close())
		require.NoError(t, c.RemoveLogFiles(1<<62))
		files, err := c.LogFiles()
		require.NoError(t, err)
		require.Len(t, files, 1)
	}
}

// A follower that stands still keeps the log, unless the disk is full.
func TestFollowersDoNotFillTheDisk(t *testing.T) {
	dir := t.TempDir()
	o := in(dir)
	o.LogLimit = 1
	c := mustOpen(t, o, filepath.Join(dir, "a.kct"))
	follower := c.Log().Hold(ulog.Holder{Kind: ulog.Follower, What: "the slave with sid=2", Weak: true}, c.Log().Last())
	defer follower.Release()
	mustSet(t, c.DB(0), "a", "1", "b", "2", "c", "3")
	segments := func() int {
		files, err := c.LogFiles()
		require.NoError(t, err)
		return len(files)
	}
	before := segments()
	require.NoError(t, c.RemoveLogFiles(1<<62))
	require.GreaterOrEqual(t, segments(), before-1)
	c.Gate().Set(gate.Limits{Disk: -1, Reserve: 1 << 30})
	require.NoError(t, c.RemoveLogFiles(1<<62))
	require.Equal(t, 1, segments())
}

// Wherever a segment of the log has lost updates that a file needs, the start is refused with the
// command that helps, and the file of the log is named in the error or in the log.
func TestLostUpdatesOfTheLogAreNotPassedOver(t *testing.T) {
	for _, suffix := range []string{".kct", ".kch"} {
		for _, private := range []bool{false, true} {
			for _, which := range []string{"oldest", "middle", "newest"} {
				for _, size := range []int64{0, 9} {
					t.Run(fmt.Sprintf("%s private=%v %s to %d bytes", suffix, private, which, size), func(t *testing.T) {
						dir := t.TempDir()
						o := in(dir)
						o.LogLimit = 1
						log := "ulog"
						if private {
							o, log = Options{}, "a"+suffix+".wal"
						}
						c := mustOpen(t, o, filepath.Join(dir, "a"+suffix))
						mustSet(t, c.DB(0), "a", "1", "b", "2", "c", "3", "d", "4")
						after := image(t, dir)
						segments, err := filepath.Glob(filepath.Join(after, log, "*.ulog"))
						require.NoError(t, err)
						if !private {
							segments = segments[1:] // the first one has no updates: it was full when it was made
						}
						at := map[string]int{"oldest": 0, "middle": len(segments) / 2, "newest": len(segments) - 1}[which]
						require.NoError(t, os.Truncate(segments[at], size))
						var said bytes.Buffer
						if o.LogDir = ""; !private {
							o = in(after)
						}
						o.Logger = slog.New(slog.NewTextHandler(&said, nil))
						path := filepath.Join(after, "a"+suffix)
						_, err = Open([]string{path}, o)
						require.Error(t, err)
						require.Contains(t, said.String()+err.Error(), segments[at])
						if strings.Contains(err.Error(), "empty the damaged one") {
							return // before anything could be read
						}
						require.ErrorContains(t, err, "kttimedmgr vacuum -onr "+path)

						tool := o
						tool.LogDir, tool.NoRepair, tool.Offline = "", true, &Offline{Force: true}
						offline, err := Open([]string{path}, tool)
						require.NoError(t, err)
						require.NoError(t, offline.Close())
						c = mustOpen(t, o, path)
						got := contents(t, c.DB(0))
						want := map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}
						maps.DeleteFunc(want, func(key, _ string) bool { _, ok := got[key]; return !ok })
						require.Equal(t, want, got)
					})
				}
			}
		}
	}
}

// A process that dies while it closes a database and removes its private log leaves nothing that
// looks like a log that has lost its updates.
func TestDeathWhileAPrivateLogIsRemoved(t *testing.T) {
	for n := 1; n < 16; n++ {
		dir := t.TempDir()
		fs := faultfs.New(vfs.OS{})
		c := mustOpen(t, Options{FS: fs, SyncInterval: time.Hour}, filepath.Join(dir, "a.kct"))
		mustSet(t, c.DB(0), "a", "1")
		fs.FailChange(n, errors.New("killed"))
		if c.Close() != nil {
			abandon(c)
		}
		var said bytes.Buffer
		c, err := Open([]string{filepath.Join(image(t, dir), "a.kct")}, Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
		require.NoError(t, err, "change %d", n)
		require.NotContains(t, said.String(), "level=ERROR", "change %d", n)
		require.Equal(t, map[string]string{"a": "1"}, contents(t, c.DB(0)))
		require.NoError(t, c.Close())
	}
}

// A server that removes files by itself has database files checkpointed, and takes snapshots only
// where it is told to. What is kept for somebody is counted.
func TestTrimLog(t *testing.T) {
	dir := t.TempDir()
	o := in(dir)
	o.LogLimit = 1
	c := mustOpen(t, o, filepath.Join(dir, "a.kct"), ":")
	hold := c.Log().Hold(ulog.Holder{Kind: ulog.Snapshot, What: "the snapshot of :"}, c.Log().Last())
	asked := 0
	c.BeforeRemoval(func(ulog.Stamp) error {
		asked++
		hold.Advance(c.Log().Last())
		return nil
	})
	mustSet(t, c.DB(0), "a", "1", "b", "2", "c", "3")
	trim := func(limits ulog.Limits, snapshots bool) ulog.Trimmed {
		done, err := c.TrimLog(limits, snapshots)
		require.NoError(t, err)
		return done
	}
	require.Zero(t, trim(ulog.Limits{}, true))
	require.Zero(t, trim(ulog.Limits{Count: 100}, true))
	done := trim(ulog.Limits{Count: 1}, false)
	require.Zero(t, asked)
	require.Equal(t, "the snapshot of :", done.KeptFor())
	require.Positive(t, done.Kept)
	require.Equal(t, done.KeptBytes, c.LogOverdue())
	done = trim(ulog.Limits{Count: 1}, true)
	require.Equal(t, 1, asked)
	require.Zero(t, done.Kept)
	require.Positive(t, done.Files)
	require.Zero(t, c.LogOverdue())
	files, err := c.LogFiles()
	require.NoError(t, err)
	require.Len(t, files, 1)
	dir = image(t, dir)
	after := mustOpen(t, in(dir), filepath.Join(dir, "a.kct"))
	require.Equal(t, "3", contents(t, after.DB(0))["c"])
}
