package db

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

func mustSet(t testing.TB, d *DB, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		require.NoError(t, d.Set(nil, []byte(pairs[i]), []byte(pairs[i+1]), record.Never))
	}
}

// in returns options for a log in dir/ulog.
func in(dir string) Options { return Options{LogDir: filepath.Join(dir, "ulog"), SID: 1} }

func TestKilledServerComesBack(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts func(dir string) Options
	}{
		{"shared log", in},
		{"private logs", func(string) Options { return Options{} }},
		{"private logs, synced", func(string) Options { return Options{SyncEach: true} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			c := mustOpen(t, tc.opts(dir), filepath.Join(dir, "a.kct"), filepath.Join(dir, "b.kch"), ":")
			mustSet(t, c.DB(0), "one", "1", "two", "2")
			require.NoError(t, c.DB(0).file.Checkpoint())
			mustSet(t, c.DB(0), "two", "2b", "three", "3")
			require.NoError(t, c.DB(0).Remove(nil, []byte("one")))
			mustSet(t, c.DB(1), "gone", "x")
			require.NoError(t, c.DB(1).Clear(nil))
			mustSet(t, c.DB(1), "b", "B")
			mustSet(t, c.DB(2), "memory", "only")

			after := image(t, dir)
			c = mustOpen(t, tc.opts(after), filepath.Join(after, "a.kct"), filepath.Join(after, "b.kch"), ":")
			require.Equal(t, map[string]string{"two": "2b", "three": "3"}, contents(t, c.DB(0)))
			require.Equal(t, map[string]string{"b": "B"}, contents(t, c.DB(1)))
			require.Empty(t, contents(t, c.DB(2)))
		})
	}
}

func TestDatabasesInAnotherOrderAfterAKill(t *testing.T) {
	dir := t.TempDir()
	a, b := "a.kct", "b.kct"
	c := mustOpen(t, in(dir), filepath.Join(dir, a), filepath.Join(dir, b))
	mustSet(t, c.DB(0), "in", "a")
	mustSet(t, c.DB(1), "in", "b")
	after := image(t, dir)
	c = mustOpen(t, in(after), filepath.Join(after, b), filepath.Join(after, a))
	require.Equal(t, map[string]string{"in": "b"}, contents(t, c.DB(0)))
	require.Equal(t, map[string]string{"in": "a"}, contents(t, c.DB(1)))
}

func TestPrivateLogIsReplayedBeforeASharedOneTakesOver(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, Options{}, filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "k", "v")
	after := image(t, dir)
	path := filepath.Join(after, "a.kct")
	c = mustOpen(t, in(after), path)
	require.Equal(t, map[string]string{"k": "v"}, contents(t, c.DB(0)))
	_, err := os.Stat(path + privateSuffix)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCleanCloseLeavesOnlyTheFile(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, Options{}, filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "k", "v")
	require.NoError(t, c.Close())
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, names, 1)
	c = mustOpen(t, Options{}, filepath.Join(dir, "a.kct"))
	require.Equal(t, map[string]string{"k": "v"}, contents(t, c.DB(0)))
}

// TestRestoredCopyIsNotRolledForward puts an older copy of a file in place; the log must not redo
// what the user undid.
func TestRestoredCopyIsNotRolledForward(t *testing.T) {
	for _, tc := range []struct {
		name string
		take func(t *testing.T, d *DB, path, to string)
	}{
		{"copied by a command while running", func(t *testing.T, d *DB, path, to string) {
			require.NoError(t, d.Synchronize(true, func(p string, at ulog.Stamp) error {
				require.Equal(t, path, p)
				require.NotZero(t, at)
				return copyFile(p, to)
			}))
		}},
		{"copied after a checkpoint", func(t *testing.T, d *DB, path, to string) {
			require.NoError(t, d.file.Checkpoint())
			require.NoError(t, copyFile(path, to))
			mustSet(t, d, "later", "1")
			require.NoError(t, d.file.Checkpoint())
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			path, backup := filepath.Join(dir, "a.kct"), filepath.Join(dir, "backup")
			c := mustOpen(t, in(dir), path)
			mustSet(t, c.DB(0), "good", "1")
			tc.take(t, c.DB(0), path, backup)
			require.NoError(t, c.DB(0).Clear(nil)) // the mistake
			after := image(t, dir)

			path = filepath.Join(after, "a.kct")
			require.NoError(t, copyFile(filepath.Join(after, "backup"), path))
			var said bytes.Buffer
			o := in(after)
			o.Logger = slog.New(slog.NewTextHandler(&said, nil))
			c = mustOpen(t, o, path)
			require.Equal(t, map[string]string{"good": "1"}, contents(t, c.DB(0)))
			require.Contains(t, said.String(), "can be brought in, while")

			mustSet(t, c.DB(0), "new", "2") // and it is an ordinary database from now on
			again := image(t, after)
			c = mustOpen(t, in(again), filepath.Join(again, "a.kct"))
			require.Equal(t, map[string]string{"good": "1", "new": "2"}, contents(t, c.DB(0)))
		})
	}
}

func TestNewFileIsNotFilledFromAnOldLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.kct")
	c := mustOpen(t, in(dir), path)
	mustSet(t, c.DB(0), "old", "1")
	require.NoError(t, c.Close())
	require.NoError(t, os.Remove(path))
	c = mustOpen(t, in(dir), path)
	require.Empty(t, contents(t, c.DB(0)))
}

func TestReadOnlyShowsWhatTheLogHas(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, Options{}, filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "k", "v")
	after := image(t, dir)
	path := filepath.Join(after, "a.kct")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	c = mustOpen(t, Options{ReadOnly: true}, path)
	require.Equal(t, map[string]string{"k": "v"}, contents(t, c.DB(0)))
	require.ErrorIs(t, c.DB(0).Set(nil, []byte("k"), nil, record.Never), dberr.ErrReadOnly)
	require.NoError(t, c.Close())
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, now)
}

// TestLongReplay replays more than fits into two overlays.
func TestLongReplay(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, in(dir), filepath.Join(dir, "a.kct"))
	want := map[string]string{}
	value := bytes.Repeat([]byte("v"), 500)
	var p Pending
	for i := range 2000 {
		key := fmt.Sprintf("%04d", i)
		require.NoError(t, c.DB(0).Set(&p, []byte(key), value, record.Never))
		want[key] = string(value)
	}
	require.NoError(t, p.Wait())
	after := image(t, dir)
	o := in(after)
	o.CheckpointSize = 64 << 10
	c = mustOpen(t, o, filepath.Join(after, "a.kct"))
	require.Equal(t, want, contents(t, c.DB(0)))
}

func TestSegmentsThatADatabaseNeedsAreCheckpointedFirst(t *testing.T) {
	dir := t.TempDir()
	o := in(dir)
	o.LogLimit = 1
	c := mustOpen(t, o, filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "a", "1", "b", "2", "c", "3")
	files, err := c.LogFiles()
	require.NoError(t, err)
	require.Greater(t, len(files), 2)
	require.NoError(t, c.RemoveLogFiles(c.Log().Last()))
	files, err = c.LogFiles()
	require.NoError(t, err)
	require.Len(t, files, 1)
	after := image(t, dir)
	c = mustOpen(t, in(after), filepath.Join(after, "a.kct"))
	require.Equal(t, map[string]string{"a": "1", "b": "2", "c": "3"}, contents(t, c.DB(0)))
}

// A database that has not been updated for long needs none of the segments that others have filled.
func TestRemovedSegmentsDoNotConcernAnIdleDatabase(t *testing.T) {
	dir := t.TempDir()
	o := in(dir)
	o.LogLimit = 1
	exprs := func(dir string) []string { return []string{filepath.Join(dir, "a.kct"), filepath.Join(dir, "b.kct")} }
	c := mustOpen(t, o, exprs(dir)...)
	mustSet(t, c.DB(0), "a", "1")
	mustSet(t, c.DB(1), "a", "1", "b", "2", "c", "3")
	require.NoError(t, c.RemoveLogFiles(c.Log().Last()))
	mustSet(t, c.DB(1), "d", "4")
	after := image(t, dir)
	c = mustOpen(t, in(after), exprs(after)...)
	require.Equal(t, map[string]string{"a": "1"}, contents(t, c.DB(0)))
	require.Len(t, contents(t, c.DB(1)), 4)
	mustSet(t, c.DB(1), "e", "5")
	require.NoError(t, c.Close())
	segments, err := filepath.Glob(filepath.Join(after, "ulog", "*.ulog"))
	require.NoError(t, err)
	for _, path := range segments[:len(segments)-1] { // by hand, since the server is down
		require.NoError(t, os.Remove(path))
	}
	c = mustOpen(t, in(after), exprs(after)...)
	require.Equal(t, map[string]string{"a": "1"}, contents(t, c.DB(0)))
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	cabinet := filepath.Join(dir, "cabinet.kch")
	require.NoError(t, os.WriteFile(cabinet, []byte("KC\n\x00 and more"), 0o644))
	for _, tc := range []struct {
		name, expr, want string
		opts             Options
	}{
		{"unknown type", "foo.xyz", "2: invalid operation: unknown database type", Options{}},
		{"missing, read-only", filepath.Join(dir, "no.kct"), "3: no repository: open failed (file not found)", Options{ReadOnly: true}},
		{"missing directory", filepath.Join(dir, "no", "x.kct"), "3: no repository: open failed (file not found)", Options{}},
		{"file of the original", cabinet, "docs/migrating.md", Options{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Open([]string{tc.expr}, tc.opts)
			var open *dberr.OpenError
			require.True(t, errors.As(err, &open))
			require.Equal(t, tc.expr, open.Expr)
			require.ErrorContains(t, open.Err, tc.want)
		})
	}
}

// TestHalfMergedFileNeedsItsLog opens a file whose process stopped within a checkpoint.
func TestHalfMergedFileNeedsItsLog(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, in(dir), filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "k", "v")
	require.NoError(t, c.DB(0).file.Amend(func(m *filestore.Meta) { m.Merging = []byte("j") }))
	after := image(t, dir)
	_, err := Open([]string{filepath.Join(after, "a.kct")}, Options{LogDir: filepath.Join(after, "other")})
	require.ErrorContains(t, err, "start once with that log")
	_, err = Open([]string{filepath.Join(after, "a.kct")}, Options{})
	require.ErrorContains(t, err, "start once with that log")
	c = mustOpen(t, in(after), filepath.Join(after, "a.kct"))
	require.Equal(t, map[string]string{"k": "v"}, contents(t, c.DB(0)))
	require.NoError(t, c.DB(0).file.Checkpoint())
	require.Nil(t, c.DB(0).file.Meta().Merging)
}

// TestMissingSegmentIsNotPassedOver removes a file of the log that the database needs.
func TestMissingSegmentIsNotPassedOver(t *testing.T) {
	dir := t.TempDir()
	o := in(dir)
	o.LogLimit = 1
	c := mustOpen(t, o, filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "a", "1", "b", "2", "c", "3", "d", "4")
	for _, gone := range [][]int{{0, 1}, {2}, {1, 2}} { // the first segment has no updates: it was full when it was made
		after := image(t, dir)
		segments, err := filepath.Glob(filepath.Join(after, "ulog", "*.ulog"))
		require.NoError(t, err)
		require.Greater(t, len(segments), 3)
		for _, i := range gone {
			require.NoError(t, os.Remove(segments[i]))
		}
		_, err = Open([]string{filepath.Join(after, "a.kct")}, in(after))
		require.ErrorContains(t, err, "are missing", "without segments %v", gone)
	}
}

// TestHalfMergedPrivateLogAndASharedOneAfterwards stops within a checkpoint with a private log, and
// starts with -ulog.
func TestHalfMergedPrivateLogAndASharedOneAfterwards(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, Options{}, filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "k", "v")
	require.NoError(t, c.DB(0).file.Amend(func(m *filestore.Meta) { m.Merging = []byte("j") }))
	after := image(t, dir)
	c = mustOpen(t, in(after), filepath.Join(after, "a.kct"))
	require.Equal(t, map[string]string{"k": "v"}, contents(t, c.DB(0)))
}

// TestProcessEndsBeforeThePrivateLogIsRemoved puts the private log back after a shared one has
// taken over.
func TestProcessEndsBeforeThePrivateLogIsRemoved(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, Options{}, filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "k", "old")
	killed := image(t, dir)
	require.NoError(t, c.DB(0).file.Checkpoint()) // as before the other one takes over
	private := image(t, filepath.Join(dir, "a.kct"+privateSuffix))
	c = mustOpen(t, in(killed), filepath.Join(killed, "a.kct"))
	mustSet(t, c.DB(0), "k", "new")

	after := image(t, killed)
	path := filepath.Join(after, "a.kct")
	require.NoError(t, os.Rename(private, path+privateSuffix))
	var said bytes.Buffer
	o := in(after)
	o.Logger = slog.New(slog.NewTextHandler(&said, nil))
	c = mustOpen(t, o, path)
	require.Equal(t, map[string]string{"k": "new"}, contents(t, c.DB(0)))
	require.NoDirExists(t, path+privateSuffix)
	require.NotContains(t, said.String(), "level=WARN")
}
