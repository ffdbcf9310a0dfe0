package filestore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/ulog/update"
)

// TestEstimate: it is exact where that is cheap, becomes exact by itself where it is not, and never
// disturbs the exact count.
func TestEstimate(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "e.kct"), 1<<30)
	write := func(n, from int) {
		for i := range n {
			s.Apply(0, []update.Update{set(fmt.Sprintf("key%060d", from+i), "v")})
		}
	}
	write(100, 0)
	require.EqualValues(t, 100, s.Estimate())
	require.NoError(t, s.Checkpoint())
	require.EqualValues(t, 100, s.Estimate())
	write(50, 0) // there already
	require.EqualValues(t, 100, s.Estimate())

	const many = 30_000 // 2 MB of keys
	write(many, 50)
	require.EqualValues(t, 100, s.Estimate(), "too many to look up: the latest that was known")
	for range 10 {
		s.Estimate()
	}
	require.EqualValues(t, many+50, s.Estimate())
	n, err := s.Count()
	require.NoError(t, err)
	require.EqualValues(t, many+50, n)

	write(many, 100_000)
	require.NoError(t, s.Checkpoint())
	require.EqualValues(t, 2*many+50, s.Estimate())
	stats := s.Stats()
	count, _, _ := stats.Checkpoints.Snapshot(1e-9)
	require.EqualValues(t, 2, count)
	require.NoError(t, stats.Err)
	require.Zero(t, stats.Stalls)
	require.NoError(t, s.Close())
}
