package filestore

import (
	"testing"

	"github.com/stretchr/testify/require"
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
		require.NotSame(t, before, now)
		before = now
	}
}
