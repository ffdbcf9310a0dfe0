package procinfo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/procinfo"
)

func TestLimitsOfTheSystem(t *testing.T) {
	require.Greater(t, procinfo.MemoryLimit(), int64(1<<20))
	require.LessOrEqual(t, procinfo.MemoryLimit(), procinfo.Read().MemTotal)
	require.Greater(t, procinfo.Anonymous(), int64(1<<20))
	require.Less(t, procinfo.Anonymous(), procinfo.Read().MemRSS+1<<20)
	require.Positive(t, procinfo.OpenFiles())
	total, free, err := procinfo.Space(t.TempDir())
	require.NoError(t, err)
	require.LessOrEqual(t, free, total)
	require.Positive(t, total)
	_, _, err = procinfo.Space("/nonexistent")
	require.ErrorContains(t, err, "/nonexistent")
}
