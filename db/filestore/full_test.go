package filestore

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	berrors "go.etcd.io/bbolt/errors"

	"gotycoon/ulog/update"
)

// TestFullFile lets the file grow no further for a while. What must hold: updates go on until the
// overlay is at twice its limit and are then refused with the reason, reads go on, and everything
// is there once there is space again.
func TestFullFile(t *testing.T) {
	const limit = 64 << 10
	s := mustOpen(t, filepath.Join(t.TempDir(), "f.kct"), limit)
	defer s.Close()
	s.file.MaxSize = int(s.FileSize())
	value := bytes.Repeat([]byte("v"), 1000)
	stored := 0
	var refused error
	for ; refused == nil && stored < 1000; stored++ {
		if refused = s.Throttle(); refused == nil {
			s.Apply(update.Stamp(stored+1), []update.Update{{Op: update.OpSet, Key: fmt.Appendf(nil, "%04d", stored), Value: value}})
		}
	}
	stored--
	require.ErrorIs(t, refused, berrors.ErrMaxSizeReached)
	require.Greater(t, stored, limit/1100, "memory takes what the disk does not")
	_, found, err := s.Get(nil, []byte("0000"), nil)
	require.NoError(t, err)
	require.True(t, found)

	s.cp.runMu.Lock() // no checkpoint is looking at it now
	s.file.MaxSize = 0
	s.cp.runMu.Unlock()
	require.Eventually(t, func() bool { return s.Throttle() == nil }, 20*time.Second, 10*time.Millisecond)
	n, err := s.Count()
	require.NoError(t, err)
	require.Equal(t, int64(stored), n)
}
