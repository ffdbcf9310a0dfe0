package db

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/ulog"
)

// killedWith makes a file with one record in it and two in its log, as a kill leaves them, and
// returns the directory, moved to where the file does not know it to be.
func killedWith(t *testing.T, options func(dir string) Options, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	var exprs []string
	for _, name := range names {
		exprs = append(exprs, filepath.Join(dir, name))
	}
	c := mustOpen(t, options(dir), exprs...)
	for i := range names {
		mustSet(t, c.DB(i), "in file", "1")
		require.NoError(t, c.DB(i).file.Checkpoint())
		mustSet(t, c.DB(i), "in log", "2", "and this", "3")
	}
	after := image(t, dir)
	c.stopBackground()
	abandon(c)
	require.NoError(t, os.RemoveAll(dir))
	return after
}

func private(string) Options { return Options{} }

// saying opens a catalog and returns what it has logged.
func saying(t *testing.T, o Options, exprs ...string) (*Catalog, string) {
	t.Helper()
	var said bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&said, nil))
	return mustOpen(t, o, exprs...), said.String()
}

// A start that would let a file go on without acknowledged updates of its log is refused, and
// changes nothing.
func TestAStartThatPassesOverUpdatesIsRefused(t *testing.T) {
	moved := func(t *testing.T, dir, name string) string { // without its private log
		t.Helper()
		to := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.Rename(filepath.Join(dir, name), to))
		return to
	}
	for _, tc := range []struct {
		name  string
		first func(dir string) Options
		then  func(t *testing.T, dir string) (Options, string)
		want  []string
	}{
		{"without the log", in, func(t *testing.T, dir string) (Options, string) {
			return Options{}, filepath.Join(dir, "a.kct")
		}, []string{"acknowledged updates: 2,", "Start with that log (-ulog ", "/ulog", "kttimedmgr recover -ts ", " -dbid 0 ", "-as-is"}},
		{"with another log", in, func(t *testing.T, dir string) (Options, string) {
			return Options{LogDir: filepath.Join(dir, "other")}, filepath.Join(dir, "a.kct")
		}, []string{"acknowledged updates: 2,"}},
		{"with a log in the place of its own", in, func(t *testing.T, dir string) (Options, string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "ulog")))
			return in(dir), filepath.Join(dir, "a.kct")
		}, []string{"its update log is not there", "may be missing", "-as-is"}},
		{"moved away from its private log", private, func(t *testing.T, dir string) (Options, string) {
			return Options{}, moved(t, dir, "a.kct")
		}, []string{"its update log is not there", "a.kct.wal", "Put the log back"}},
		{"beside another file's private log", private, func(t *testing.T, dir string) (Options, string) {
			require.NoError(t, os.Rename(filepath.Join(dir, "a.kct"), filepath.Join(dir, "b.kct")))
			return Options{}, filepath.Join(dir, "b.kct")
		}, []string{"acknowledged updates: 2,", "Put the file and the directory back together"}},
		{"an older copy beside a private log", private, func(t *testing.T, dir string) (Options, string) {
			path := filepath.Join(dir, "a.kct")
			older, err := os.ReadFile(path)
			require.NoError(t, err)
			c := mustOpen(t, Options{}, path)
			mustSet(t, c.DB(0), "newer", "4")
			require.NoError(t, c.DB(0).file.Checkpoint())
			mustSet(t, c.DB(0), "newest", "5")
			path = filepath.Join(image(t, dir), "a.kct")
			require.NoError(t, os.WriteFile(path, older, 0o644))
			return Options{}, path
		}, []string{"an older copy", "acknowledged updates"}},
		{"another file beside a private log", private, func(t *testing.T, dir string) (Options, string) {
			path := filepath.Join(dir, "a.kct")
			require.NoError(t, os.Remove(path))
			return Options{}, path
		}, []string{"not the file that was there", "acknowledged updates: 2,"}},
		{"a tool beside a private log", private, func(t *testing.T, dir string) (Options, string) {
			path := filepath.Join(dir, "a.kct")
			require.NoError(t, os.Remove(path))
			return Options{Offline: &Offline{}}, path
		}, []string{"acknowledged updates: 2,", "-onr"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, path := tc.then(t, killedWith(t, tc.first, "a.kct"))
			roots := []string{filepath.Dir(path), filepath.Dir(o.LogDir)}
			tear(t, o.LogDir, path+privateSuffix)
			before := everything(t, roots)
			if o.Offline == nil {
				wrong, _ := Examine([]string{path}, o)
				require.Len(t, wrong, 1)
				for _, want := range tc.want {
					require.ErrorContains(t, wrong[0], want)
				}
				require.Equal(t, before, everything(t, roots), "looked at")
			}
			for range 2 { // a second attempt is not let through either
				_, err := Open([]string{path}, o)
				require.Error(t, err)
				for _, want := range tc.want {
					require.ErrorContains(t, err, want)
				}
				require.Equal(t, before, everything(t, roots), "files and directories")
			}
			if o.Offline != nil {
				o.Offline.Force = true
			} else {
				o.AsIs = true
			}
			c, said := saying(t, o, path)
			require.NotContains(t, contents(t, c.DB(0)), "in log")
			require.Contains(t, said, "level=ERROR")
			require.Contains(t, said, "kttimedmgr recover")
			require.NotNil(t, c.DB(0).info.PassedOver)
			require.NoError(t, c.Close())

			o.AsIs, o.Offline = false, nil
			c, said = saying(t, o, path)
			require.Empty(t, said, "once is enough")
			require.Nil(t, c.DB(0).info.PassedOver)
		})
	}
}

// tear leaves what a kill amid a write and the beginning of a segment leave: each log that is
// opened has something to mend.
func tear(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		segments, err := filepath.Glob(filepath.Join(dir, "*.ulog"))
		require.NoError(t, err)
		if len(segments) == 0 {
			continue
		}
		newest, err := os.OpenFile(segments[len(segments)-1], os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		_, err = newest.WriteString("\xa1torn")
		require.NoError(t, err)
		require.NoError(t, newest.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, "0000000009.ulog.new"), nil, 0o644))
	}
}

// everything returns the files below some directories with their content, and the directories.
func everything(t *testing.T, roots []string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, root := range roots {
		if !filepath.IsAbs(root) {
			continue
		}
		require.NoError(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
			require.NoError(t, err)
			if e.IsDir() {
				all[path] = "directory"
				return nil
			}
			content, err := os.ReadFile(path)
			all[path] = fmt.Sprintf("%d bytes, %x", len(content), sha256.Sum256(content))
			return err
		}))
	}
	return all
}

// A start with several databases changes none of them where one of them is refused, nor its log or
// the private one of another, and makes no new file.
func TestAStartThatIsRefusedForOneDatabaseChangesNoOther(t *testing.T) {
	dir := killedWith(t, private, "a.kct", "b.kct")
	mine := func(dir string) Options { return Options{LogDir: filepath.Join(dir, "shared")} }
	c := mustOpen(t, mine(dir), filepath.Join(dir, "c.kct"))
	mustSet(t, c.DB(0), "k", "v")
	dir = image(t, dir)
	require.NoError(t, os.Rename(filepath.Join(dir, "b.kct"), filepath.Join(dir, "d.kct"))) // away from its log
	paths := []string{"new.kct", "a.kct", "c.kct", "d.kct#lww=true"}
	for i := range paths {
		paths[i] = filepath.Join(dir, paths[i])
	}
	for _, o := range []Options{{}, mine(dir)} {
		tear(t, o.LogDir, filepath.Join(dir, "a.kct"+privateSuffix))
		before := everything(t, []string{dir})
		_, err := Open(paths, o)
		require.ErrorContains(t, err, "its update log is")
		require.Equal(t, before, everything(t, []string{dir}))
	}
}

// Who looks before the start is told what the start would say, and nothing changes by looking.
func TestAFileIsExaminedForUpdatesThatAStartWouldPassOver(t *testing.T) {
	dir := killedWith(t, in, "a.kct")
	path := filepath.Join(dir, "a.kct")
	examine := func(o Options) (string, []string) {
		t.Helper()
		before := everything(t, []string{dir})
		wrong, notes := Examine([]string{path, ":", filepath.Join(dir, "new.kct")}, o)
		require.Equal(t, before, everything(t, []string{dir}))
		if err := errors.Join(wrong...); err != nil {
			return err.Error(), notes
		}
		return "", notes
	}
	for _, o := range []Options{{}, {LogDir: filepath.Join(dir, "other")}} {
		wrong, _ := examine(o)
		require.Contains(t, wrong, "acknowledged updates: 2,")
		require.Contains(t, wrong, "-as-is")
	}
	for _, o := range []Options{in(dir), {AsIs: true}} {
		wrong, notes := examine(o)
		require.Empty(t, wrong)
		require.Empty(t, notes)
	}
	wrong, _ := examine(Options{ReadOnly: true})
	require.NotContains(t, wrong, path)
	require.Contains(t, wrong, "new.kct: ")

	c := mustOpen(t, in(dir), path)
	require.Equal(t, "2", contents(t, c.DB(0))["in log"])
	wrong, notes := examine(Options{})
	require.Empty(t, wrong)
	require.Len(t, notes, 1)
	require.Contains(t, notes[0], "a.kct: in use")
	wrong, notes = examine(in(dir))
	require.Empty(t, wrong)
	require.Len(t, notes, 2)
	require.Contains(t, notes[0], "ulog: in use")
	require.NoError(t, c.Close())
	for _, o := range []Options{{}, in(dir)} {
		wrong, notes = examine(o)
		require.Empty(t, wrong, "closed")
		require.Empty(t, notes)
	}
}

// What a log has lost is told beforehand: as an error where a file needs it, and a note where none
// does.
func TestLogsAreExaminedForWhatTheyHaveLost(t *testing.T) {
	for _, private := range []bool{false, true} {
		o, log := in, "ulog"
		if private {
			o, log = func(string) Options { return Options{} }, "a.kct"+privateSuffix
		}
		dir := killedWith(t, o, "a.kct")
		path := filepath.Join(dir, "a.kct")
		require.NoError(t, os.Truncate(filepath.Join(dir, log, "0000000001.ulog"), 0))
		before := everything(t, []string{dir})
		wrong, notes := Examine([]string{path}, o(dir))
		require.Len(t, wrong, 1)
		require.ErrorContains(t, wrong[0], "may be missing from the log")
		require.Len(t, notes, 1)
		require.Contains(t, notes[0], "is empty")
		_, err := Open([]string{path}, o(dir))
		require.ErrorContains(t, err, "may be missing from the log")
		require.Equal(t, before, everything(t, []string{dir}))
	}
}

// The services' database is no exception.
func TestTheServicesDatabaseIsNotOpenedWithoutItsLog(t *testing.T) {
	dir := t.TempDir()
	o := in(dir)
	o.Services = filepath.Join(dir, "services.kct")
	c := mustOpen(t, o)
	mustSet(t, c.Services(), "bound", "1000")
	after := image(t, dir)
	_, err := Open(nil, Options{Services: filepath.Join(after, "services.kct")})
	require.ErrorContains(t, err, "acknowledged updates: 1,")
	require.ErrorContains(t, err, "-dbid 65534")
}

// Where the log has nothing more for a file, it goes on without it as after a clean end.
func TestAFileThatLacksNothingNeedsNoLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.kct")
	c := mustOpen(t, in(dir), path, ":")
	mustSet(t, c.DB(0), "k", "v")
	require.NoError(t, c.DB(0).file.Checkpoint())
	mustSet(t, c.DB(1), "of another database", "v")
	c, said := saying(t, Options{}, filepath.Join(image(t, dir), "a.kct"))
	require.Equal(t, map[string]string{"k": "v"}, contents(t, c.DB(0)))
	require.NotContains(t, said, "WARN")
	require.NotContains(t, said, "ERROR")
}

// The log knows that a file did not take its last updates: it says so when the file comes back.
func TestALogTellsWhatAFileNeverTook(t *testing.T) {
	dir := killedWith(t, in, "a.kct", "b.kct")
	path := filepath.Join(dir, "a.kct")
	c := mustOpen(t, Options{AsIs: true}, path)
	mustSet(t, c.DB(0), "without the log", "4")
	require.NoError(t, c.Close())

	c, said := saying(t, in(dir), path, filepath.Join(dir, "b.kct"))
	require.Contains(t, said, "level=ERROR")
	require.Contains(t, said, "used without this log")
	require.Contains(t, said, "acknowledged updates: 2,")
	passed := c.DB(0).info.PassedOver
	require.NotNil(t, passed)
	require.EqualValues(t, 2, passed.Updates)
	require.Nil(t, c.DB(1).info.PassedOver)
	require.Len(t, contents(t, c.DB(1)), 3)
	require.Equal(t, map[string]string{"in file": "1", "without the log": "4"}, contents(t, c.DB(0)))
}

// A tool that has a file open after a kill brings the updates of its log in. The next start does
// not say that they are missing: who followed its advice would bring old values in once more, over
// newer ones.
func TestALogKnowsWhatAToolHasTaken(t *testing.T) {
	dir := killedWith(t, in, "a.kct")
	path := filepath.Join(dir, "a.kct")
	for _, value := range []string{"newer", "newest"} {
		c := mustOpen(t, Options{Offline: &Offline{}}, path)
		mustSet(t, c.DB(0), "in log", value)
		require.NoError(t, c.Close())
	}
	c, said := saying(t, in(dir), path)
	require.NotContains(t, said, "ERROR")
	require.Nil(t, c.DB(0).info.PassedOver)
	require.Equal(t, map[string]string{"in file": "1", "in log": "newest", "and this": "3"}, contents(t, c.DB(0)))
}

// A file opened for reading only shows what its log has, wherever that is; where it is not there,
// the start is refused.
func TestReadOnlyFindsTheLogThatAFileNames(t *testing.T) {
	dir := killedWith(t, in, "a.kct")
	path := filepath.Join(dir, "a.kct")
	c := mustOpen(t, Options{ReadOnly: true}, path)
	require.Len(t, contents(t, c.DB(0)), 3)
	require.NoError(t, c.Close())

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "ulog")))
	_, err := Open([]string{path}, Options{ReadOnly: true})
	require.ErrorContains(t, err, "its update log is not there")
	c = mustOpen(t, Options{ReadOnly: true, AsIs: true}, path)
	require.Equal(t, map[string]string{"in file": "1"}, contents(t, c.DB(0)))
}

// A copy that a command of synchronize has made is whole: on another machine it is opened without
// the log.
func TestACopyOfACommandNeedsNoLog(t *testing.T) {
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "a.kct")
	c := mustOpen(t, in(dir), filepath.Join(dir, "a.kct"))
	mustSet(t, c.DB(0), "k", "v")
	require.NoError(t, c.DB(0).Synchronize(false, func(path string, _ ulog.Stamp) error { return copyFile(path, copied) }))
	require.False(t, c.DB(0).file.Meta().Held)
	mustSet(t, c.DB(0), "later", "v")
	require.NoError(t, c.Close())
	require.NoError(t, os.RemoveAll(dir))
	c, said := saying(t, Options{}, copied)
	require.Equal(t, map[string]string{"k": "v"}, contents(t, c.DB(0)))
	require.Contains(t, said, "level=WARN")
}
