package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCompact(t *testing.T) {
	_, memory, _ := open(t)
	_, err := memory.Compact(t.Context())
	require.ErrorContains(t, err, "only the file of a database on disk can be compacted")
	require.Error(t, memory.AbortCompact(t.Context()))
	_, err = memory.AwaitCompact(t.Context(), time.Second)
	require.Error(t, err)
}
