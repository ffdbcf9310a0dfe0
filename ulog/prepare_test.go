package ulog

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
)

// content returns the files of a directory by their names; nil where there is no directory.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return nil
	}
	files := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		files[filepath.Base(name)] = string(b)
	}
	return files
}

// Prepare tells what Open would find, and changes nothing, whatever is to be mended. Begin mends as
// Open does.
func TestPrepareChangesNothing(t *testing.T) {
	whole := func(t *testing.T) string { // two segments
		dir := filepath.Join(t.TempDir(), "log")
		l, err := Open(dir, Options{Limit: 1})
		require.NoError(t, err)
		for range 3 {
			at, err := l.Append([]Update{{Key: []byte("k"), Value: []byte("v")}})
			require.NoError(t, err)
			require.NoError(t, l.Wait(at))
		}
		require.NoError(t, l.Close())
		return dir
	}
	newest := func(dir string) string {
		names, _ := filepath.Glob(filepath.Join(dir, "*.ulog"))
		return names[len(names)-1]
	}
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, dir string)
		flaws int
	}{
		"nothing to mend": {func(*testing.T, string) {}, 0},
		"no directory":    {func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) }, 0},
		"empty directory": {func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.Mkdir(dir, 0o755))
		}, 0},
		"torn": {func(t *testing.T, dir string) {
			f, err := os.OpenFile(newest(dir), os.O_WRONLY|os.O_APPEND, 0)
			require.NoError(t, err)
			_, err = f.WriteString("\xa1torn")
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}, 0},
		"a segment that was never born": {func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "0000000009.ulog.new"), []byte("x"), 0o644))
		}, 0},
		"no identity":    {func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, identityName))) }, 0},
		"newest emptied": {func(t *testing.T, dir string) { require.NoError(t, os.Truncate(newest(dir), 0)) }, 1},
		"newest cut off": {func(t *testing.T, dir string) { require.NoError(t, os.Truncate(newest(dir), headerSize+5)) }, 1},
		"first emptied":  {func(t *testing.T, dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, segmentName(1)), 0)) }, 1},
		"all segments gone": {func(t *testing.T, dir string) {
			names, _ := filepath.Glob(filepath.Join(dir, "*.ulog"))
			for _, name := range names {
				require.NoError(t, os.Remove(name))
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := whole(t)
			tc.spoil(t, dir)
			before := content(t, dir)
			var said bytes.Buffer
			o := Options{Limit: 1, Logger: slog.New(slog.NewTextHandler(&said, nil))}
			p, err := Prepare(dir, o)
			require.NoError(t, err)
			require.Len(t, p.Flaws(), tc.flaws)
			require.NoError(t, p.Close())
			require.Equal(t, before, content(t, dir))

			said.Reset()
			p, err = Prepare(dir, o)
			require.NoError(t, err)
			id, last := p.ID(), p.Last()
			l, err := p.Begin()
			require.NoError(t, err)
			require.Equal(t, id, l.ID())
			require.GreaterOrEqual(t, l.Last(), last)
			require.Equal(t, tc.flaws, strings.Count(said.String(), "level=ERROR"), said.String())
			require.NoError(t, l.Close())
			written, err := Identity(vfs.OS{}, dir)
			require.NoError(t, err)
			require.Equal(t, id, written)
		})
	}
}

// A prepared log is locked: nobody else can change what the decision is about.
func TestAPreparedLogIsLocked(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	p, err := Prepare(dir, Options{})
	require.NoError(t, err)
	_, err = Prepare(dir, Options{TryLock: true})
	require.ErrorIs(t, err, vfs.ErrLocked)
	l, err = p.Begin()
	require.NoError(t, err)
	_, err = Prepare(dir, Options{TryLock: true})
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.NoError(t, l.Close())
}

// Where two processes find no log, the second one to begin goes on with the log of the first.
func TestTheSecondOfTwoThatFoundNoLogGetsTheFirstOnes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	first, err := Prepare(dir, Options{})
	require.NoError(t, err)
	second, err := Prepare(dir, Options{})
	require.NoError(t, err)
	l, err := first.Begin()
	require.NoError(t, err)
	at, err := l.Append([]Update{{Key: []byte("k"), Value: []byte("v")}})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	again, err := second.Begin()
	require.NoError(t, err)
	require.Equal(t, l.ID(), again.ID())
	require.GreaterOrEqual(t, again.Last(), at)
	require.NoError(t, again.Close())
}
