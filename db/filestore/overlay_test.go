package filestore

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/ulog/update"
)

// The memory of a written overlay serves the next one, and is given back with the store.
func TestWrittenOverlaysLeaveTheirMemory(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "a.kct"), DefaultLimit)
	fill := func(from int) {
		for i := range 2000 {
			s.Apply(update.Stamp(from+i+1), []update.Update{set(string(rune(from+i)), "value")})
		}
	}
	fill(0)
	require.Zero(t, s.Stats().ReserveBytes)
	require.NoError(t, s.Checkpoint())
	kept := s.Stats().ReserveBytes
	require.Positive(t, kept)
	fill(10000)
	require.Less(t, s.Stats().ReserveBytes, kept)
	require.NoError(t, s.Checkpoint())
	require.Positive(t, s.Stats().ReserveBytes)
	require.NoError(t, s.Close())
	require.Zero(t, s.reserve.Bytes())
}
