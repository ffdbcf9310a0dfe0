package ulog

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs/crashfs"
	"gotycoon/internal/vfs/faultfs"
)

// A process that ends at any single change of a short life with rotations leaves what it has
// remembered, also when a power cut and a process that has nothing to remember come between.
func TestWhatIsRememberedSurvivesDeathAtEachStep(t *testing.T) {
	for step := 1; ; step++ {
		root := t.TempDir()
		disk, err := crashfs.New(root)
		require.NoError(t, err)
		fs := faultfs.New(disk)
		fs.FailChange(step, errKilled)
		safe, died := rememberingLife(filepath.Join(root, "ulog"), Options{FS: fs, SyncEach: true, SyncInterval: time.Hour, Limit: 150})
		disk.Cut()
		for seed := range uint64(5) {
			after := filepath.Join(t.TempDir(), fmt.Sprint(seed))
			require.NoError(t, disk.Crash(rand.New(rand.NewPCG(seed, uint64(step))), after))
			dir := filepath.Join(after, "ulog")
			for range 2 {
				l := mustOpen(t, dir, Options{Limit: -1})
				requireRemembered(t, l, safe)
				mustCommit(t, l, "by a client")
				require.NoError(t, l.Close())
			}
		}
		if died == nil {
			require.Greater(t, step, 30, "all steps were tried")
			return
		}
		require.ErrorIs(t, died, errKilled)
	}
}

// requireRemembered requires that a log remembers number n, or what was under way when the process
// ended.
func requireRemembered(t *testing.T, l *Log, n int) {
	t.Helper()
	if state := string(remembered(l)); n > 0 || state != "" {
		require.Contains(t, []string{fmt.Sprint(n), fmt.Sprint(n + 1)}, state)
	}
}

// remembered returns the newest state that a log remembers.
func remembered(l *Log) []byte {
	state, _ := l.Remembered()
	return state
}

// rememberingLife opens a log and remembers numbers with updates; it returns the last one that was
// acknowledged.
func rememberingLife(dir string, o Options) (safe int, err error) {
	l, err := Open(dir, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for i := range 8 {
		s, err := l.AppendReplicated(sets("k"), &Position{State: fmt.Append(nil, i+1)})
		if err == nil {
			err = l.Wait(s)
		}
		if err != nil {
			return safe, err
		}
		safe = i + 1
	}
	return safe, nil
}

// What is remembered in a segment that may be removed is in the next one on disk, whatever a power
// cut takes of it.
func TestWhatIsRememberedSurvivesTheRemovalOfItsSegment(t *testing.T) {
	root := t.TempDir()
	disk, err := crashfs.New(root)
	require.NoError(t, err)
	l := mustOpen(t, filepath.Join(root, "ulog"), Options{FS: disk, SyncInterval: time.Hour, Limit: 150})
	at, err := l.AppendReplicated(sets("a", "b", "c", "d", "e"), &Position{State: make([]byte, 3000)})
	require.NoError(t, err)
	require.NoError(t, l.SyncTo(at))
	mustCommit(t, l, "in the next segment")
	require.NoError(t, l.RemoveFiles(at))
	disk.Cut()
	require.ErrorIs(t, l.Close(), crashfs.ErrPowerCut)
	for seed := range uint64(20) {
		after := filepath.Join(t.TempDir(), fmt.Sprint(seed))
		require.NoError(t, disk.Crash(rand.New(rand.NewPCG(seed, 0)), after))
		_, err := os.Stat(filepath.Join(after, "ulog", segmentName(1)))
		require.ErrorIs(t, err, os.ErrNotExist)
		l := mustOpen(t, filepath.Join(after, "ulog"), Options{})
		require.Len(t, remembered(l), 3000)
		require.NoError(t, l.Close())
	}
}

// Where the removal of only some segments has survived a power cut, nothing is missing for those
// who need nothing of them.
func TestRemovedSegmentsThatComeBackAreNoGap(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Limit: 150})
	mustCommit(t, l, keys("k", 20)...)
	require.NoError(t, os.Remove(l.segmentPath(2)))
	defer l.Close()
	first, _, err := statSegment(l.fs, dir, 1)
	require.NoError(t, err)
	head, _, err := statSegment(l.fs, dir, 3)
	require.NoError(t, err)
	for after, gap := range map[Stamp]bool{first.last: true, head.last - 1: false} {
		r, err := l.NewReader(after)
		require.NoError(t, err)
		for err == nil {
			_, err = r.Next()
		}
		var missing *GapError
		require.Equal(t, gap, errors.As(err, &missing))
		if !gap {
			require.Equal(t, io.EOF, err)
		}
		require.NoError(t, r.Close())
	}
}
