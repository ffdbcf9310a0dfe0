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

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/crashfs"
	"gotycoon/internal/vfs/faultfs"
)

// spoil is a way in which a segment loses its updates.
type spoil struct {
	name string
	do   func(t *testing.T, path string)
}

var spoils = []spoil{
	{"empty", func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) }},
	{"damaged head", func(t *testing.T, path string) {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		b[0] ^= 1
		require.NoError(t, os.WriteFile(path, b, filePerm))
	}},
	{"cut off", func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, headerSize+commitSize)) }},
}

// Whatever segment has lost its updates, Open names its file, and who needs them meets a gap or an
// error: at once, and after the log has gone on and was opened again.
func TestLostUpdatesAreTold(t *testing.T) {
	for _, s := range spoils {
		for i, which := range []string{"oldest", "middle", "newest"} {
			t.Run(s.name+" "+which, func(t *testing.T) {
				dir := t.TempDir()
				fill(t, dir, Options{Limit: 1}, "k1", "k2", "k3") // in segments 2 to 4
				require.NoError(t, os.Remove(filepath.Join(dir, segmentName(1))))
				path := filepath.Join(dir, segmentName(uint64(2+i)))
				before, err := os.ReadFile(path)
				require.NoError(t, err)
				s.do(t, path)

				var text logText
				l, err := Open(dir, Options{Logger: text.logger()})
				if s.name == "damaged head" && which == "newest" {
					require.ErrorContains(t, err, path)
					return
				}
				require.NoError(t, err)
				require.Contains(t, text.String(), "level=ERROR")
				require.Contains(t, text.String(), path)
				for range 2 {
					require.True(t, misses(t, l, 0))
					at := mustCommit(t, l, "later")
					require.NoError(t, l.Close())
					l = mustOpen(t, dir, Options{Now: func() time.Time { return time.Unix(0, 0) }})
					require.False(t, misses(t, l, at), "who has everything that came later")
				}
				require.NoError(t, l.Close())

				require.NoError(t, os.WriteFile(path, before, filePerm))
				all, damage, _ := drain(t, dir, 0)
				require.Empty(t, damage)
				require.Equal(t, []string{"k1", "k2", "k3", "later", "later"}, keysOf(t, all), "a copy that is put back is read")
			})
		}
	}
}

// The line about a newest segment that has lost its updates says what to do with a copy of it, and
// then nothing is missing for anybody.
func TestACopyOfTheNewestSegmentIsPutBack(t *testing.T) {
	for _, s := range spoils {
		if s.name == "damaged head" {
			continue // the log is not opened, and gets no mark
		}
		t.Run(s.name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, Options{Limit: 1}, "k1", "k2", "k3")
			nums, err := listSegments(vfs.OS{}, dir)
			require.NoError(t, err)
			n := nums[len(nums)-1]
			path, mark := filepath.Join(dir, segmentName(n)), filepath.Join(dir, segmentName(n+2))
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			s.do(t, path)
			var text logText
			require.NoError(t, mustOpen(t, dir, Options{Logger: text.logger()}).Close())
			require.Contains(t, text.String(), "put the copy in its place, remove "+mark)

			require.NoError(t, os.WriteFile(path, before, filePerm))
			require.NoError(t, os.Remove(mark))
			l := mustOpen(t, dir, Options{})
			require.False(t, misses(t, l, 1))
			require.NoError(t, l.Close())
			all, damage, reports := drain(t, dir, 0)
			require.Empty(t, damage)
			require.Empty(t, reports)
			require.Equal(t, []string{"k1", "k2", "k3"}, keysOf(t, all))
		})
	}
}

// misses reports whether a reader of the log behind a stamp is told that something may be missing.
func misses(t *testing.T, l *Log, after Stamp) bool {
	t.Helper()
	r, err := l.NewReader(after)
	require.NoError(t, err)
	for err == nil {
		_, err = r.Next()
	}
	require.NoError(t, r.Close())
	return !errors.Is(err, io.EOF)
}

// Tools that only read the log are told as well.
func TestReadersTellOfAnEmptyNewestSegment(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, Options{Limit: 1}, "k1", "k2")
	path := filepath.Join(dir, segmentName(3))
	require.NoError(t, os.Truncate(path, 0))
	all, _, reports := drain(t, dir, 0)
	require.Equal(t, []string{"k1"}, keysOf(t, all))
	require.Equal(t, []string{path + " is empty: the updates that it had are missing"}, reports)
}

// A log whose segments are all gone does not begin as if there had never been any.
func TestALogThatHasLostAllItsSegments(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, Options{}, "k1")
	require.NoError(t, os.Remove(filepath.Join(dir, segmentName(1))))
	var text logText
	l := mustOpen(t, dir, Options{Logger: text.logger()})
	defer l.Close()
	require.Contains(t, text.String(), "has lost all its files")
	require.True(t, misses(t, l, 0))
}

// No crash makes a segment that looks as if it had lost its updates: neither the death of the
// process nor a power cut, wherever they come.
func TestCrashesLeaveNoEmptySegments(t *testing.T) {
	for n := 1; n < 60; n++ {
		root := t.TempDir()
		disk, err := crashfs.New(root)
		require.NoError(t, err)
		fs := faultfs.New(disk)
		fs.FailChange(n, errKilled)
		if l, err := Open(filepath.Join(root, "ulog"), Options{FS: fs, Limit: 150, SyncInterval: time.Hour}); err == nil {
			for i := range 8 {
				if at, err := l.Append(sets(fmt.Sprint(i))); err != nil || l.Wait(at) != nil {
					break
				}
			}
			_ = l.Close() // fails unless n is large
		}
		images := []string{filepath.Join(root, "ulog")}
		disk.Cut()
		for seed := range uint64(4) {
			after := filepath.Join(t.TempDir(), fmt.Sprint(seed))
			require.NoError(t, disk.Crash(rand.New(rand.NewPCG(seed, uint64(n))), after))
			images = append(images, filepath.Join(after, "ulog"))
		}
		for _, dir := range images {
			var text logText
			l := mustOpen(t, dir, Options{Logger: text.logger()})
			require.NotContains(t, text.String(), "level=ERROR", "after change %d", n)
			names, err := vfs.OS{}.ReadDir(dir)
			require.NoError(t, err)
			for _, name := range names {
				require.NotContains(t, name, unborn)
			}
			require.NoError(t, l.Close())
		}
	}
}
