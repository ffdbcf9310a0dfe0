package ulog

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/crashfs"
	"gotycoon/internal/vfs/faultfs"
)

var errDisk = errors.New("input/output error")

// TestFaults fails the n-th write or sync, or runs out of space, at every n. What was acknowledged
// before is there afterwards, nothing is acknowledged any more, and the failed call is not made
// again.
func TestFaults(t *testing.T) {
	faults := map[string]func(fs *faultfs.FS, n int){
		"write": func(fs *faultfs.FS, n int) { fs.FailWrite(n, errDisk) },
		"sync":  func(fs *faultfs.FS, n int) { fs.FailSync(n, errDisk) },
		"space": func(fs *faultfs.FS, n int) { fs.Space(int64(37 * n)) },
	}
	for kind, fault := range faults {
		for _, each := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s SyncEach=%v", kind, each), func(t *testing.T) {
				failed := 0
				for n := 1; n < 40; n++ {
					failed += runFault(t, func(fs *faultfs.FS) { fault(fs, n) }, each)
				}
				require.Greater(t, failed, 3)
			})
		}
	}
}

// runFault commits keys until the log fails and returns 1, or 0 if it does not.
func runFault(t *testing.T, fault func(*faultfs.FS), each bool) int {
	dir := t.TempDir()
	disk, err := crashfs.New(dir) // whose syncs take no time
	require.NoError(t, err)
	fs := faultfs.New(disk)
	l := mustOpen(t, dir, Options{FS: fs, SyncEach: each, Limit: 300, Ahead: 100, SyncInterval: time.Hour})
	r, err := l.NewReader(0)
	require.NoError(t, err)
	fault(fs)
	var acked []string
	for i, k := range keys("k", 12) {
		u := set(k)
		if i%4 == 2 {
			u = Update{Op: OpSet, Key: []byte(k), Value: make([]byte, 100), Stays: true}
			if u.Ahead, err = l.WriteAhead(&u, nil); err != nil {
				require.ErrorIs(t, err, ErrAhead)
				require.NoError(t, l.Err(), "it concerns this update only")
				continue
			}
		}
		s, aerr := l.Append([]Update{u})
		require.NoError(t, aerr)
		if err = l.Wait(s); err != nil {
			break
		}
		acked = append(acked, k)
	}
	if err == nil {
		err = l.SyncTo(l.Last())
	}
	if err != nil {
		requireFailed(t, l, fs)
	}
	for _, k := range acked {
		e, err := r.Next()
		require.NoError(t, err)
		require.Contains(t, string(e.Message), k)
	}
	require.NoError(t, r.Close())
	if cerr := l.Close(); err != nil {
		require.Error(t, cerr)
	}
	require.NoError(t, mustOpen(t, dir, Options{FS: disk}).Close())
	have := readKeys(t, dir)
	require.GreaterOrEqual(t, len(have), len(acked))
	require.Equal(t, acked, append([]string(nil), have[:len(acked)]...))
	require.LessOrEqual(t, len(have), len(acked)+1)
	if err != nil {
		return 1
	}
	return 0
}

// requireFailed checks that a log has ended for good.
func requireFailed(t *testing.T, l *Log, fs *faultfs.FS) {
	t.Helper()
	<-l.failed
	first := l.Err()
	require.Error(t, first)
	require.True(t, errors.Is(first, errDisk) || errors.Is(first, syscall.ENOSPC))
	writes, syncs := fs.Writes(), fs.Syncs()
	_, err := l.Append(sets("more"))
	require.Equal(t, first, err)
	require.Equal(t, first, l.SyncTo(l.Last()))
	if l.safeTail().last < l.Last() { // what was acknowledged before stays so
		require.Equal(t, first, l.Wait(l.Last()))
	}
	require.Equal(t, first, l.writer.tidy(true))
	require.Equal(t, writes, fs.Writes())
	require.Equal(t, syncs, fs.Syncs())
}

// TestFailureWakesAll ends the log while many wait for two groups.
func TestFailureWakesAll(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	l := mustOpen(t, t.TempDir(), Options{FS: fs, SyncEach: true, SyncInterval: time.Hour})
	r, err := l.NewReader(0)
	require.NoError(t, err)
	reader := make(chan error, 1)
	go func() { _, err := nextOrWait(t.Context(), r); reader <- err }()
	fs.FailSync(1, errDisk)
	release := make(chan struct{})
	fs.OnSync(func() { <-release })
	results := make(chan error)
	const waiters = 40
	size, err := encodedSize(sets("k"))
	require.NoError(t, err)
	for range waiters {
		go func() {
			s, err := l.Append(sets("k"))
			if err == nil {
				err = l.Wait(s)
			}
			results <- err
		}()
	}
	within(t, "all have appended", func() bool { return l.Bytes() >= waiters*int64(size) })
	close(release)
	for range waiters {
		require.ErrorIs(t, <-results, errDisk)
	}
	require.ErrorIs(t, <-reader, errDisk)
	require.NoError(t, r.Close())
	require.ErrorIs(t, l.Close(), errDisk)
}

// TestNothingIsAcknowledgedAfterAFailure fails a sync while a group is being written: though that
// write goes well, nobody is told so, nor do readers see it.
func TestNothingIsAcknowledgedAfterAFailure(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	l := mustOpen(t, t.TempDir(), Options{FS: fs, SyncInterval: time.Hour})
	first := mustCommit(t, l, "a")
	second := mustAppend(t, l, "b")
	entered := make(chan struct{})
	fs.OnWrite(func() { close(entered); <-l.failed })
	waited := make(chan error)
	go func() { waited <- l.Wait(second) }()
	<-entered
	fs.FailSync(1, errDisk)
	require.ErrorIs(t, l.SyncTo(first), errDisk)
	require.ErrorIs(t, <-waited, errDisk)
	require.Equal(t, first, l.safeTail().last)
	require.NoError(t, l.Wait(first), "this was acknowledged before")
	require.ErrorIs(t, l.Close(), errDisk)
}

// TestIntervalSyncFails ends the log though nobody asked for the sync.
func TestIntervalSyncFails(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	l := mustOpen(t, t.TempDir(), Options{FS: fs, SyncInterval: time.Millisecond})
	fs.FailSync(1, errDisk)
	mustAppend(t, l, "a")
	<-l.failed
	require.ErrorIs(t, l.Err(), errDisk)
	require.ErrorIs(t, l.Close(), errDisk)
}
