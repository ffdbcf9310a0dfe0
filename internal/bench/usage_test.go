//go:build linux

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProcNumber(t *testing.T) {
	const status = "Name:\tktserver\nVmRSS:\t   12 kB\nRssAnon:\t       8 kB\nThreads:\t9\n"
	for name, want := range map[string]int64{"VmRSS": 12 << 10, "RssAnon": 8 << 10, "Threads": 9} {
		got, err := procNumber(status, name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := procNumber(status, "Vm")
	require.ErrorContains(t, err, "no Vm")
	_, err = procNumber(status, "Name")
	require.Error(t, err)
}

// The clock must agree with getrusage(2), which counts the same threads of this process.
func TestProcessorClock(t *testing.T) {
	used := func() time.Duration {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	cpu, err := cpuOf(os.Getpid())
	require.NoError(t, err)
	const tick = 20 * time.Millisecond
	require.Greater(t, cpu, before-tick)
	require.Less(t, cpu, used()+tick)
	_, err = cpuOf(1<<22 + 1) // above the largest process ID of Linux
	require.Error(t, err)
}

func TestDiskUsedCountsBlocks(t *testing.T) {
	dir := t.TempDir()
	empty, err := diskUsed(dir)
	require.NoError(t, err)
	sparse := filepath.Join(dir, "sparse")
	require.NoError(t, os.WriteFile(sparse, make([]byte, 64<<10), 0o600))
	require.NoError(t, os.Truncate(sparse, 1<<30))
	full, err := diskUsed(dir)
	require.NoError(t, err)
	require.GreaterOrEqual(t, full-empty, int64(64<<10))
	require.Less(t, full-empty, int64(1<<20), "the hole of a sparse file takes no blocks")
	free, err := diskFree(dir)
	require.NoError(t, err)
	require.Positive(t, free)
}
