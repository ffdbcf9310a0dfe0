package server_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/server"
	"gotycoon/snapshot"
	"gotycoon/ulog"
)

// withSnapshots is a server with a directory for snapshots, and an update log if logged.
func withSnapshots(dir string, logged bool, dbs ...string) func(*server.Config) {
	return func(c *server.Config) {
		c.Snapshots.Dir = filepath.Join(dir, "bgs")
		if logged {
			c.UpdateLog, c.ServerID = filepath.Join(dir, "ulog"), 1
		}
		c.Databases = dbs
	}
}

// home is a directory with a directory for snapshots in it.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bgs"), 0o755))
	return dir
}

func (c *client) set(db int, key, value string) {
	c.t.Helper()
	status, body := c.get(fmt.Sprintf("/rpc/set?DB=%d&key=%s&value=%s", db, key, value))
	require.Equal(c.t, 200, status, body)
}

// value returns the value of a key, or "" where there is none.
func (c *client) value(db int, key string) string {
	c.t.Helper()
	status, body := c.get(fmt.Sprintf("/rpc/get?DB=%d&key=%s", db, key))
	if status == 450 {
		return ""
	}
	require.Equal(c.t, 200, status, body)
	value, _, _ := strings.Cut(strings.TrimPrefix(body, "value\t"), "\n")
	return value
}

// crashed returns a copy of a directory, as a crash at this moment would leave it.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	image := t.TempDir()
	require.NoError(t, os.CopyFS(image, os.DirFS(dir)))
	return image
}

// refused runs a server that does not start, and returns its log.
func refused(t *testing.T, change func(*server.Config)) string {
	t.Helper()
	cfg := server.DefaultConfig()
	cfg.Port = 0
	change(&cfg)
	var log buffer
	require.Equal(t, 1, server.Run(context.Background(), cfg, &log, io.Discard))
	return strings.Join(log.lines(), "\n")
}

func TestSnapshotsAreTakenAtTheEndAndLoaded(t *testing.T) {
	for _, compressor := range []string{"none", "zlib", "lzo", "lzma", "zstd", "s2", "bogus"} {
		t.Run(compressor, func(t *testing.T) {
			dir := home(t)
			change := func(c *server.Config) {
				withSnapshots(dir, false, ":", "%", "*", filepath.Join(dir, "a.kct"))(c)
				c.Snapshots.Compressor = compressor
			}
			s := start(t, change)
			for i := range 4 {
				s.dial().set(i, "k"+strconv.Itoa(i), "v")
			}
			require.Zero(t, s.stop())
			require.Equal(t, "[SYSTEM]: snapshotting databases", s.log.lines()[len(s.log.lines())-6])

			s = start(t, withSnapshots(dir, false, ":", "%", "*", filepath.Join(dir, "a.kct")))
			require.Subset(t, masked(s, "size"), []string{"[SYSTEM]: applying a snapshot file: db=0 ts=N count=1 size=N",
				"[SYSTEM]: applying a snapshot file: db=1 ts=N count=1 size=N", "[SYSTEM]: applying a snapshot file: db=2 ts=N count=1 size=N"})
			c := s.dial()
			for i := range 4 {
				require.Equal(t, "v", c.value(i, "k"+strconv.Itoa(i)))
			}
		})
	}
}

// masked is the log without the numbers that differ from run to run.
func masked(s *running, _ string) []string {
	lines := s.log.lines()
	for i, line := range lines {
		fields := strings.Fields(line)
		for j, f := range fields {
			if strings.HasPrefix(f, "ts=") || strings.HasPrefix(f, "size=") {
				name, _, _ := strings.Cut(f, "=")
				fields[j] = name + "=N"
			}
		}
		lines[i] = strings.Join(fields, " ")
	}
	return lines
}

func TestUpdatesAfterTheSnapshotComeFromTheLog(t *testing.T) {
	dir := home(t)
	s := start(t, withSnapshots(dir, true, ":", "%"))
	c := s.dial()
	c.set(0, "a", "1")
	c.set(1, "b", "1")
	before := crashed(t, dir) // no interval has passed: the databases in the snapshots are empty
	require.Zero(t, s.stop())

	s = start(t, withSnapshots(dir, true, ":", "%"))
	c = s.dial()
	c.set(0, "a", "2")
	c.set(0, "c", "1")
	status, _ := c.get("/rpc/remove?DB=1&key=b")
	require.Equal(t, 200, status)
	after := crashed(t, dir)
	c.get("/rpc/clear?DB=0")
	c.set(0, "d", "1")
	cleared := crashed(t, dir)

	c = start(t, withSnapshots(before, true, ":", "%")).dial()
	require.Equal(t, "1", c.value(0, "a"))
	require.Equal(t, "1", c.value(1, "b"))
	c = start(t, withSnapshots(after, true, ":", "%")).dial()
	require.Equal(t, "2", c.value(0, "a"))
	require.Equal(t, "1", c.value(0, "c"))
	require.Empty(t, c.value(1, "b"))
	c = start(t, withSnapshots(cleared, true, ":", "%")).dial()
	require.Empty(t, c.value(0, "a"))
	require.Equal(t, "1", c.value(0, "d"))
}

// A log of a life without snapshots is not replayed into a database that begins empty.
func TestLogsOfEarlierLivesAreNotReplayed(t *testing.T) {
	dir := home(t)
	s := start(t, func(c *server.Config) {
		withSnapshots(dir, true, ":")(c)
		c.Snapshots.Dir = ""
	})
	s.dial().set(0, "early", "1")
	require.Zero(t, s.stop())
	s = start(t, withSnapshots(dir, true, ":"))
	s.dial().set(0, "late", "1")
	c := start(t, withSnapshots(crashed(t, dir), true, ":")).dial()
	require.Empty(t, c.value(0, "early"))
	require.Equal(t, "1", c.value(0, "late"))
}

func TestASnapshotFromAheadIsReplacedByOneOfTheLog(t *testing.T) {
	dir := home(t)
	future := ulog.StampAt(time.Now().Add(time.Hour))
	write(t, dir, 0, snapshot.Header{Stamp: future, Count: 1}, "a", "1")
	s := start(t, withSnapshots(dir, true, ":"))
	s.dial().set(0, "b", "1")
	c := start(t, withSnapshots(crashed(t, dir), true, ":")).dial()
	require.Equal(t, "1", c.value(0, "a"))
	require.Equal(t, "1", c.value(0, "b"))
}

// write puts a snapshot of one record into the directory.
func write(t *testing.T, dir string, index int, h snapshot.Header, key, value string) {
	t.Helper()
	var b strings.Builder
	w, err := snapshot.NewWriter(&b, h)
	require.NoError(t, err)
	require.NoError(t, w.Add([]byte(key), []byte("\xff\xff\xff\xff\xff"+value)))
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bgs", snapshot.Name(index)), []byte(b.String()), 0o600))
}

func TestAnOlderSnapshotPutBackIsNotRolledForward(t *testing.T) {
	dir := home(t)
	s := start(t, withSnapshots(dir, true, ":"))
	s.dial().set(0, "a", "good")
	require.Zero(t, s.stop())
	path := filepath.Join(dir, "bgs", snapshot.Name(0))
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	s = start(t, withSnapshots(dir, true, ":"))
	s.dial().set(0, "a", "bad")
	require.Zero(t, s.stop())

	require.NoError(t, os.WriteFile(path, old, 0o600))
	s = start(t, withSnapshots(dir, true, ":"))
	require.Contains(t, strings.Join(s.log.lines(), "\n"), "is older than the last snapshot")
	require.Equal(t, "good", s.dial().value(0, "a"))
	s.dial().set(0, "b", "1")
	c := start(t, withSnapshots(crashed(t, dir), true, ":")).dial()
	require.Equal(t, "good", c.value(0, "a"))
	require.Equal(t, "1", c.value(0, "b"))
}

func TestALogThatDoesNotReachBackStopsTheStart(t *testing.T) {
	dir := home(t)
	change := func(c *server.Config) {
		withSnapshots(dir, true, ":")(c)
		c.UpdateLogLimit = 1
	}
	s := start(t, change)
	c := s.dial()
	for i := range 5 {
		c.set(0, "k"+strconv.Itoa(i), "v")
	}
	image := crashed(t, dir)
	for n := 1; n <= 3; n++ {
		require.NoError(t, os.Remove(filepath.Join(image, "ulog", fmt.Sprintf("%010d.ulog", n))))
	}
	log := refused(t, withSnapshots(image, true, ":"))
	require.Contains(t, log, "may be missing from the update log, because files of it were removed or are damaged: put them back")
}

func TestDamagedSnapshotsStopTheStart(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"it does not begin with the header of a snapshot": func(b []byte) []byte { return append([]byte("X"), b[1:]...) },
		"the file ends within a record":                   func(b []byte) []byte { return b[:len(b)-1] },
		"its compressor is unknown":                       func(b []byte) []byte { b[6] = 1; return b },
	} {
		dir := home(t)
		write(t, dir, 0, snapshot.Header{Stamp: 5, Count: 1}, "a", "1")
		path := filepath.Join(dir, "bgs", snapshot.Name(0))
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		b = damage(b)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		for _, db := range []string{":", filepath.Join(dir, "a.kct")} {
			log := refused(t, withSnapshots(dir, true, db))
			require.Contains(t, log, "could not apply a snapshot: "+path)
			require.Contains(t, log, name)
			require.Contains(t, log, "put a good copy in its place")
			require.NoFileExists(t, filepath.Join(dir, "a.kct"))
			require.NoFileExists(t, filepath.Join(dir, "a.kct.restoring"))
		}
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, b, after, "it is left as it is")
	}
}

func TestFilesOfUnknownDatabasesAreIgnored(t *testing.T) {
	dir := home(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bgs", "00000001.ktss"), []byte("no snapshot"), 0o600))
	require.Zero(t, start(t, withSnapshots(dir, true, ":")).stop())
}

func TestSeveralSnapshotsOfOneDatabaseAreAppliedOldestFirst(t *testing.T) {
	dir := home(t)
	write(t, dir, 0, snapshot.Header{Stamp: 9, Count: 1}, "k", "newer")
	require.NoError(t, os.Rename(filepath.Join(dir, "bgs", "00000000.ktss"), filepath.Join(dir, "bgs", "0a.KTSS")))
	write(t, dir, 0, snapshot.Header{Stamp: 8, Count: 1}, "k", "older")
	s := start(t, withSnapshots(dir, false, ":"))
	require.Equal(t, "newer", s.dial().value(0, "k"))
	require.Contains(t, strings.Join(s.log.lines(), "\n"), "there are 2 snapshot files of database 0")
}

func TestAMissingFileIsRestoredAndAnOtherIsLeftAlone(t *testing.T) {
	dir := home(t)
	path := filepath.Join(dir, "a.kct")
	write(t, dir, 0, snapshot.Header{Stamp: 9, Count: 1}, "k", "snapshot")
	require.NoError(t, os.WriteFile(path+".restoring", []byte("what a crash has left"), 0o600))
	s := start(t, withSnapshots(dir, true, path))
	require.Contains(t, s.log.lines(), "[SYSTEM]: applying a snapshot file: db=0 ts=9 count=1 size=0")
	require.Equal(t, "snapshot", s.dial().value(0, "k"))
	s.dial().set(0, "k", "file")
	require.Zero(t, s.stop())
	require.NoFileExists(t, path+".restoring")

	write(t, dir, 0, snapshot.Header{Stamp: 9, Count: 1}, "k", "snapshot")
	s = start(t, withSnapshots(dir, true, path))
	require.Equal(t, "file", s.dial().value(0, "k"))
	aside := filepath.Join(dir, "bgs", "00000000.ktss.set-aside")
	require.Contains(t, strings.Join(s.log.lines(), "\n"), "kttimedmgr load "+path+" "+aside)
	require.NotContains(t, strings.Join(s.log.lines(), "\n"), "applying")
	require.Zero(t, s.stop())
	require.FileExists(t, aside, "a snapshot that a user has put there is not overwritten")

	s = start(t, withSnapshots(dir, true, path))
	require.Contains(t, strings.Join(s.log.lines(), "\n"), "kttimedmgr load "+path+" "+filepath.Join(dir, "bgs", "00000000.ktss"))
	require.Zero(t, s.stop())
	names, err := filepath.Glob(filepath.Join(dir, "bgs", "*set-aside*"))
	require.NoError(t, err)
	require.Equal(t, []string{aside}, names)
}

func TestRemovingLogFilesTakesSnapshotsFirst(t *testing.T) {
	dir := home(t)
	s := start(t, func(c *server.Config) {
		withSnapshots(dir, true, ":")(c)
		c.UpdateLogLimit = 1
	})
	c := s.dial()
	for i := range 5 {
		c.set(0, "k"+strconv.Itoa(i), "v")
	}
	status, body := c.get("/rpc/ulog_remove")
	require.Equal(t, 200, status, body)
	c.set(0, "last", "v")
	c = start(t, withSnapshots(crashed(t, dir), true, ":")).dial()
	require.Equal(t, "v", c.value(0, "k0"))
	require.Equal(t, "v", c.value(0, "last"))
}

func TestAFailedSnapshotAtTheEndIsAFailure(t *testing.T) {
	dir := home(t)
	s := start(t, withSnapshots(dir, false, ":"))
	require.NoError(t, os.Remove(filepath.Join(dir, "bgs")))
	require.Equal(t, 1, s.stop())
	require.Contains(t, s.log.lines(), "[SYSTEM]: snapshotting was abandoned")
}

func TestSnapshotsAreRetried(t *testing.T) {
	dir := home(t)
	bgs := filepath.Join(dir, "bgs")
	s := start(t, func(c *server.Config) {
		withSnapshots(dir, false, ":", "%")(c)
		c.Snapshots.Interval = 20 * time.Millisecond
	})
	s.dial().set(0, "a", "1")
	require.NoError(t, os.RemoveAll(bgs))
	eventually(t, func() bool {
		return slices.ContainsFunc(s.log.lines(), func(l string) bool { return strings.HasPrefix(l, "[ERROR]: could not take a snapshot of %") })
	})
	require.NoError(t, os.Mkdir(bgs, 0o755))
	eventually(t, func() bool {
		files, err := snapshot.List(vfs.OS{}, bgs)
		return err == nil && len(files) == 2 && files[0].Header.Count == 1
	})
	require.Equal(t, "1", s.dial().value(0, "a"))
}
