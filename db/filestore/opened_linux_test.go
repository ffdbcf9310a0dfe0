package filestore

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/filestore/paging"
)

// A compaction replaces a file that is larger than memory by another one, which has a mirror too.
func TestACompactedFileHasAMirror(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30, Memory: 1 << 10})
	fillLoosely(t, s)
	s.tellDone() // as after a checkpoint in the background
	before := s.reading.Load().mirror.Load()
	require.NotNil(t, before)
	for range 2 {
		require.NoError(t, compact(s))
		now := s.reading.Load().mirror.Load()
		require.NotNil(t, now)
		require.True(t, before != now) // testify would print the whole file
		before = now
	}
}

// When no mirror can be made, the log says so once, and it is tried again with each checkpoint.
func TestAMirrorIsTriedAgain(t *testing.T) {
	s, path := quiet(t, Options{Limit: 1 << 30, Memory: 1 << 10})
	var text bytes.Buffer
	s.opts.Logger = slog.New(slog.NewTextHandler(&text, nil))
	o := s.reading.Load()
	o.dropMirror() // that of the empty file
	require.NoError(t, os.Rename(path, path+".away"))
	for range 3 {
		s.tellDone()
		require.True(t, o.mirror.Load() == nil)
	}
	require.Equal(t, 1, strings.Count(text.String(), "level=WARN"), text.String())
	require.NoError(t, os.Rename(path+".away", path))
	s.tellDone()
	require.NotNil(t, o.mirror.Load())
}

// A file that outgrows its mirror gets a larger one. The small one stays for those who have it, until
// the file is closed.
func TestAMirrorGrowsWithItsFile(t *testing.T) {
	s, path := quiet(t, Options{Limit: 1 << 30, Memory: 1 << 10})
	fillLoosely(t, s)
	o := s.reading.Load()
	small, err := paging.NewMirror(path, o.info, 1<<14)
	require.NoError(t, err)
	o.dropMirror()
	o.mirror.Store(small)
	for range 2 {
		s.tellDone()
	}
	grown := o.mirror.Load()
	require.True(t, small != grown)
	require.Greater(t, grown.Size(), s.FileSize())
	maps := func() int {
		text, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		return strings.Count(string(text), path)
	}
	require.GreaterOrEqual(t, maps(), 3, "bbolt's, and two mirrors")
	require.NoError(t, s.closeFile())
	require.Zero(t, maps())
}
