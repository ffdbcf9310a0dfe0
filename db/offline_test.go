package db

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/filestore"
)

// crashed leaves what a server with -ulog leaves that was killed: a.kct and b.kct, each with a
// record in the file and one only in the log.
func crashed(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	c := mustOpen(t, in(dir), filepath.Join(dir, "a.kct"), filepath.Join(dir, "b.kct"))
	for i, name := range []string{"a", "b"} {
		mustSet(t, c.DB(i), "in file", name)
		require.NoError(t, c.DB(i).file.Checkpoint())
		mustSet(t, c.DB(i), "in log", name)
	}
	killed := image(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, "ulog", "gotycoon.id"))) // the log of the process that lives on is another one
	return killed
}

// both is what crashed leaves in a database.
func both(name string, more ...string) map[string]string {
	m := map[string]string{"in file": name, "in log": name}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

// tool returns options for a tool, and what it will have been warned of.
func tool(readOnly bool) (Options, *bytes.Buffer) {
	said := new(bytes.Buffer)
	return Options{Offline: &Offline{}, ReadOnly: readOnly, Logger: slog.New(slog.NewTextHandler(said, nil))}, said
}

// change opens a file as a tool and stores a record in it.
func change(t *testing.T, o Options, path string) {
	t.Helper()
	c, err := Open([]string{path}, o)
	require.NoError(t, err)
	mustSet(t, c.DB(0), "by", "the tool")
	require.NoError(t, c.Close())
}

// restart starts a server on what crashed has left, and returns what is in its databases after
// another crash.
func restart(t *testing.T, dir string) (a, b map[string]string) {
	t.Helper()
	c := mustOpen(t, in(dir), filepath.Join(dir, "a.kct"), filepath.Join(dir, "b.kct"))
	first := [2]map[string]string{contents(t, c.DB(0)), contents(t, c.DB(1))}
	again := image(t, dir)
	c = mustOpen(t, in(again), filepath.Join(again, "a.kct"), filepath.Join(again, "b.kct"))
	require.Equal(t, first[0], contents(t, c.DB(0)))
	require.Equal(t, first[1], contents(t, c.DB(1)))
	return first[0], first[1]
}

func TestToolReadsWhatIsOnlyInTheLog(t *testing.T) {
	dir := crashed(t)
	path := filepath.Join(dir, "b.kct")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	o, said := tool(true)
	c := mustOpen(t, o, path)
	require.Equal(t, both("b"), contents(t, c.DB(0)))
	require.NoError(t, c.Close())
	require.Empty(t, said.String())

	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "reading changed the file")
	a, b := restart(t, dir)
	require.Equal(t, both("a"), a)
	require.Equal(t, both("b"), b)
}

func TestServerAfterAToolThatWrote(t *testing.T) {
	for _, tc := range []struct {
		name string
		log  string
		dbid uint16
	}{
		{"without a log", "", 0},
		{"to the file's log", "ulog", 1},
		{"to the file's log as another database", "ulog", 7},
		{"to another log", "other", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := crashed(t)
			o, said := tool(false)
			o.Offline.DBID = tc.dbid
			if tc.log != "" {
				o.LogDir = filepath.Join(dir, tc.log)
			}
			change(t, o, filepath.Join(dir, "b.kct"))
			require.Empty(t, said.String())
			a, b := restart(t, dir)
			require.Equal(t, both("a"), a)
			require.Equal(t, both("b", "by", "the tool"), b)
		})
	}
}

func TestServerAfterAToolThatWasKilled(t *testing.T) {
	dir := crashed(t)
	o, _ := tool(false)
	c := mustOpen(t, o, filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "by", "the tool")
	a, b := restart(t, image(t, dir))
	require.Equal(t, both("a", "by", "the tool"), a)
	require.Equal(t, both("b"), b)
}

func TestToolOnAFileThatWasMovedWithItsLog(t *testing.T) {
	dir := crashed(t)
	o, said := tool(false)
	require.NoError(t, os.Rename(filepath.Join(dir, "ulog"), filepath.Join(dir, "elsewhere")))
	_, err := Open([]string{filepath.Join(dir, "a.kct")}, o)
	require.ErrorContains(t, err, "5: broken file: ")
	require.ErrorContains(t, err, "is not there")

	o.Offline.Logs = []string{filepath.Join(dir, "elsewhere")}
	change(t, o, filepath.Join(dir, "a.kct"))
	require.Empty(t, said.String())
	require.NoError(t, os.Rename(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "ulog")))
	a, _ := restart(t, dir)
	require.Equal(t, both("a", "by", "the tool"), a)
}

func TestToolWithoutTheLog(t *testing.T) {
	dir := crashed(t)
	path := filepath.Join(dir, "a.kct")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "ulog")))
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	o, said := tool(true)
	c := mustOpen(t, o, path)
	require.Equal(t, map[string]string{"in file": "a"}, contents(t, c.DB(0)))
	require.NoError(t, c.Close())
	require.Contains(t, said.String(), "may be missing")

	o, said = tool(false)
	_, err = Open([]string{path}, o)
	require.ErrorContains(t, err, "use -onr")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "a refused file was changed")

	o.Offline.Force = true
	change(t, o, path)
	require.Contains(t, said.String(), "may be missing")
	c = mustOpen(t, o, path)
	require.Equal(t, map[string]string{"in file": "a", "by": "the tool"}, contents(t, c.DB(0)))
}

// TestToolRefusesALogWithAGap removes a segment that has updates which the file lacks.
func TestToolRefusesALogWithAGap(t *testing.T) {
	dir := t.TempDir()
	o := in(dir)
	o.LogLimit = 64
	c := mustOpen(t, o, filepath.Join(dir, "a.kct"))
	for _, key := range []string{"1", "2", "3", "4", "5", "6"} {
		mustSet(t, c.DB(0), key, "a value that makes the log begin another file")
	}
	dir = image(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, "ulog", "0000000003.ulog")))
	path := filepath.Join(dir, "a.kct")

	writer, said := tool(false)
	_, err := Open([]string{path}, writer)
	require.ErrorContains(t, err, "files of it were removed")
	writer.Offline.Force = true
	change(t, writer, path)
	require.Contains(t, said.String(), "files of it were removed")
}

func TestToolLeavesAnOlderCopyAsItIs(t *testing.T) {
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "a.kct"), filepath.Join(dir, "backup.kct")
	c := mustOpen(t, in(dir), path)
	mustSet(t, c.DB(0), "good", "1")
	require.NoError(t, c.DB(0).file.Checkpoint())
	require.NoError(t, copyFile(path, backup))
	mustSet(t, c.DB(0), "bad", "1")
	require.NoError(t, c.Close())

	for _, readOnly := range []bool{true, false} {
		o, said := tool(readOnly)
		c := mustOpen(t, o, backup)
		require.Equal(t, map[string]string{"good": "1"}, contents(t, c.DB(0)))
		require.Contains(t, said.String(), "kttimedmgr recover -ts ")
		require.NoError(t, c.Close())
	}
}

// TestToolOpensAHotBackupAsItIs leaves the choice of updates to the caller, as recover needs it.
func TestToolOpensAHotBackupAsItIs(t *testing.T) {
	dir := crashed(t)
	o, said := tool(false)
	o.Offline.AsIs = true
	c := mustOpen(t, o, filepath.Join(dir, "a.kct"))
	require.Equal(t, map[string]string{"in file": "a"}, contents(t, c.DB(0)))
	require.Empty(t, said.String())
}

func TestToolAndPrivateLog(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, Options{}, filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "k", "v")
	dir = image(t, dir)
	path := filepath.Join(dir, "a.kct")
	o, said := tool(true)
	c = mustOpen(t, o, path)
	require.Equal(t, map[string]string{"k": "v"}, contents(t, c.DB(0)))
	copied := filepath.Join(dir, "copy.kct")
	_, err := c.DB(0).CopyFile(copied, nil)
	require.NoError(t, err)
	require.NoError(t, c.Close())

	o, _ = tool(false)
	change(t, o, path)
	change(t, o, copied)
	require.Empty(t, said.String())
	for _, path := range []string{path, copied} {
		c = mustOpen(t, Options{}, path)
		require.Equal(t, map[string]string{"k": "v", "by": "the tool"}, contents(t, c.DB(0)))
	}
}

// TestCopyInThePlaceOfTheCrashedFile copies a file with what is only in the log, and lets a server
// go on with either.
func TestCopyInThePlaceOfTheCrashedFile(t *testing.T) {
	dir := crashed(t)
	path, copied := filepath.Join(dir, "a.kct"), filepath.Join(dir, "copy.kct")
	o, _ := tool(true)
	c := mustOpen(t, o, path)
	var told int
	size, err := c.DB(0).CopyFile(copied, func(n int) { told += n })
	require.NoError(t, err)
	require.Equal(t, size, int64(told))
	_, err = c.DB(0).CopyFile(path, nil)
	require.ErrorContains(t, err, "the database itself")
	require.NoError(t, c.Close())

	c = mustOpen(t, o, copied)
	require.Equal(t, both("a"), contents(t, c.DB(0)))
	require.NoError(t, c.Close())

	second := image(t, dir)
	require.NoError(t, os.Rename(filepath.Join(second, "copy.kct"), filepath.Join(second, "a.kct")))
	for _, dir := range []string{dir, second} {
		a, b := restart(t, image(t, dir))
		require.Equal(t, both("a"), a)
		require.Equal(t, both("b"), b)
	}

	c = mustOpen(t, in(dir), path, filepath.Join(dir, "b.kct")) // the file goes on, and the copy is an older one
	mustSet(t, c.DB(0), "later", "1")
	require.NoError(t, c.Close())
	require.NoError(t, copyFile(copied, path))
	a, _ := restart(t, dir)
	require.Equal(t, both("a"), a)
}

// TestUpdatesOfAnotherFileAreNotTakenOver closes a file and has another one use its number in the
// log.
func TestUpdatesOfAnotherFileAreNotTakenOver(t *testing.T) {
	dir := t.TempDir()
	f, g := filepath.Join(dir, "f.kct"), filepath.Join(dir, "g.kct")
	c := mustOpen(t, in(dir), f)
	mustSet(t, c.DB(0), "of", "f")
	require.NoError(t, c.Close())
	c = mustOpen(t, in(dir), g)
	mustSet(t, c.DB(0), "of", "g")
	require.NoError(t, c.Close())

	want := map[string]string{"of": "f"}
	o, said := tool(true)
	c = mustOpen(t, o, f)
	require.Equal(t, want, contents(t, c.DB(0)))
	require.NoError(t, c.Close())
	require.Empty(t, said.String())
	c = mustOpen(t, in(dir), f)
	require.Equal(t, want, contents(t, c.DB(0)))
	mustSet(t, c.DB(0), "more", "of f")
	again := image(t, dir)
	c = mustOpen(t, in(again), filepath.Join(again, "f.kct"))
	require.Equal(t, map[string]string{"of": "f", "more": "of f"}, contents(t, c.DB(0)))
}

// TestToolOnAHalfMergedFile opens a file whose process stopped within a checkpoint.
func TestToolOnAHalfMergedFile(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, in(dir), filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "k", "v")
	require.NoError(t, c.DB(0).file.Amend(func(m *filestore.Meta) { m.Merging = []byte("j") }))
	with, without := image(t, dir), image(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, "ulog", "gotycoon.id")))
	require.NoError(t, os.RemoveAll(filepath.Join(without, "ulog")))

	o, said := tool(true)
	c = mustOpen(t, o, filepath.Join(without, "a.kct"))
	require.Contains(t, said.String(), "stopped within a checkpoint")
	require.NoError(t, c.Close())
	o, _ = tool(false)
	o.Offline.Force = true
	_, err := Open([]string{filepath.Join(without, "a.kct")}, o)
	require.ErrorContains(t, err, "start once with that log")

	o, said = tool(true)
	c = mustOpen(t, o, filepath.Join(with, "a.kct"))
	require.Equal(t, map[string]string{"k": "v"}, contents(t, c.DB(0)))
	copied := filepath.Join(with, "copy.kct")
	_, err = c.DB(0).CopyFile(copied, nil)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Empty(t, said.String())
	o, _ = tool(false)
	for _, path := range []string{filepath.Join(with, "a.kct"), copied} {
		change(t, o, path)
		c = mustOpen(t, o, path)
		require.Equal(t, map[string]string{"k": "v", "by": "the tool"}, contents(t, c.DB(0)))
		require.Nil(t, c.DB(0).file.Meta().Merging)
	}
}

func TestReset(t *testing.T) {
	dir := crashed(t)
	path := filepath.Join(dir, "a.kct")
	o, _ := tool(false)
	require.NoError(t, Reset(path, o))
	require.NoError(t, Reset(filepath.Join(dir, "none.kct"), o))
	require.NoError(t, Reset(":", o))
	a, b := restart(t, dir)
	require.Empty(t, a)
	require.Equal(t, both("b"), b)

	kyoto := filepath.Join(dir, "kc.kch")
	require.NoError(t, os.WriteFile(kyoto, []byte("KC\nthe rest"), 0o600))
	require.ErrorContains(t, Reset(kyoto, o), "Kyoto Cabinet")
	require.FileExists(t, kyoto)
}

// TestLinesAfterACrash adds to a text database whose last lines are only in the log.
func TestLinesAfterACrash(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, in(dir), filepath.Join(dir, "a.kcx"))
	mustSet(t, c.DB(0), "", "one", "", "two")
	dir = image(t, dir)
	c = mustOpen(t, in(dir), filepath.Join(dir, "a.kcx"))
	mustSet(t, c.DB(0), "", "three")
	require.Len(t, contents(t, c.DB(0)), 3)
}
