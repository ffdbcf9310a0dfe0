package procinfo_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/procinfo"
)

// Addresses that are only reserved, as bbolt does for each file, are no memory.
func TestReservedAddressesAreNoMemory(t *testing.T) {
	before := procinfo.Read()
	require.Greater(t, before.MemSize, before.MemRSS/2)
	require.GreaterOrEqual(t, before.MemPeak, before.MemSize)
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer f.Close()
	const reserved = 64 << 30
	data, err := syscall.Mmap(int(f.Fd()), 0, reserved, syscall.PROT_READ, syscall.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(data)) }()
	after := procinfo.Read()
	require.Less(t, after.MemSize, before.MemSize+1<<30)
	require.Less(t, after.MemPeak, before.MemPeak+1<<30)
	require.GreaterOrEqual(t, after.MemPeak, after.MemSize)
}

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
