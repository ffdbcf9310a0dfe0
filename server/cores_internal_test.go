package server

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A directory as the system makes it is read; of anything else there are no figures.
func TestFiguresOfCores(t *testing.T) {
	proc := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(proc, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	_, err := readCores(proc)
	require.ErrorIs(t, err, errNoFigures)
	write("self/task/1/schedstat", "3000 100 4\n")
	write("self/task/7/schedstat", "4000 20 1\n")
	_, err = readCores(proc)
	require.ErrorIs(t, err, errNoFigures)
	write("stat", "cpu  1 2 3 250 5\ncpu0 1 2 3 4 5\nprocesses 8\nprocs_running 4\nprocs_blocked 0\n")
	sum, err := readCores(proc)
	require.NoError(t, err)
	require.Equal(t, cores{ran: 7000, waited: 120, idle: 2500 * time.Millisecond, busy: 4}, sum)
	for _, text := range []string{"", "1", "1 x", "x 1 1"} {
		write("self/task/7/schedstat", text)
		_, err = readCores(proc)
		require.ErrorIs(t, err, errNoFigures, text)
	}
	write("self/task/7/schedstat", "4000 20 1\n")
	for _, text := range []string{"cpu  1 2\nprocs_running 4\n", "cpu  1 2 3 250 5\n"} {
		write("stat", text)
		_, err = readCores(proc)
		require.ErrorIs(t, err, errNoFigures, text)
	}
}

// The figures of this process: work is seen.
func TestFiguresOfThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("this kernel does not tell how long threads wait")
	}
	before, err := readCores("/proc")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		after, err := readCores("/proc")
		require.NoError(t, err)
		return after.ran > before.ran && after.idle >= before.idle
	}, 10*time.Second, time.Microsecond)
}
