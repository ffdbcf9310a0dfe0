package ulog

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
)

// racingFS leaves a file out of every second list of a directory, as systems may while the file is
// created.
type racingFS struct {
	vfs.OS
	without string
	lists   int
}

func (fs *racingFS) ReadDir(name string) ([]string, error) {
	names, err := fs.OS.ReadDir(name)
	if fs.lists++; fs.lists%2 == 0 {
		names = slices.DeleteFunc(names, func(n string) bool { return n == fs.without })
	}
	return names, err
}

// A segment that begins while the directory is listed is not taken for one that is gone.
func TestSegmentThatBeginsWhileTheDirectoryIsListed(t *testing.T) {
	for lists := range 2 {
		fs, dir := &racingFS{}, t.TempDir()
		l := mustOpen(t, dir, Options{Limit: 150, FS: fs})
		defer l.Close()
		mustCommit(t, l, "first")
		r, err := OpenReader(fs, dir, 0, ReaderOptions{})
		require.NoError(t, err)
		defer r.Close()
		require.Equal(t, 1, atEnd(t, r))
		n := 0
		for most := l.writer.end().seg + 3; l.writer.end().seg < most; n++ {
			mustCommit(t, l, fmt.Sprintf("update %04d", n))
		}

		fs.without, fs.lists = segmentName(r.seg+1), lists
		require.Equal(t, n, atEnd(t, r), "a gap that is none")
		for range 2 {
			files, err := Files(fs, dir)
			require.NoError(t, err)
			require.Contains(t, fmt.Sprint(files), fs.without)
			files, err = l.Files()
			require.NoError(t, err)
			require.Contains(t, fmt.Sprint(files), fs.without)
		}
	}
}
