package filestore

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// turns returns the shortest and the longest turns that a thread of the process takes.
func turns(t *testing.T) (shortest, longest uint64) {
	tasks, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	shortest = math.MaxUint64
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		require.NoError(t, err)
		if attr, err := unix.SchedGetAttr(id, 0); err == nil { // otherwise it has ended
			shortest, longest = min(shortest, attr.Runtime), max(longest, attr.Runtime)
		}
	}
	return shortest, longest
}

// The goroutine of the checkpoints lets threads that serve clients go first. Nothing else in the
// tests of the package takes long turns than checkpoints and compactions.
func TestCheckpointsTakeLongTurns(t *testing.T) {
	if shortest, _ := turns(t); shortest == 0 {
		t.Skip("this system has no turns of its own length for a thread")
	}
	s, err := Open(filepath.Join(t.TempDir(), "a.kct"), Options{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		shortest, longest := turns(t)
		return longest > shortest
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, s.Close())
}
