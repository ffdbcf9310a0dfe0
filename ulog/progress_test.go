package ulog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

// stands reports whether the log has waited for its disk for a while, and done nothing.
func stands(l *Log) func() bool {
	before := l.Progress()
	return func() bool {
		now := l.Progress()
		same := now == before && now.Waiting
		before = now
		return same
	}
}

func TestProgressShowsADiskThatHangs(t *testing.T) {
	for name, each := range map[string]bool{"write": false, "fsync of each group": true} {
		t.Run(name, func(t *testing.T) {
			disk := faultfs.New(vfs.OS{})
			l := mustOpen(t, t.TempDir(), Options{FS: disk, SyncEach: each, SyncInterval: time.Hour})
			mustCommit(t, l, "a")
			require.False(t, l.Progress().Waiting)
			hung := make(chan struct{})
			if each {
				disk.OnSync(func() { <-hung })
			} else {
				disk.OnWrite(func() { <-hung })
			}
			at, err := l.Append(sets("b"))
			require.NoError(t, err)
			require.False(t, l.Progress().Waiting, "nobody waits yet")
			waited := make(chan error, 1)
			go func() { waited <- l.Wait(at) }()
			require.Eventually(t, stands(l), 5*time.Second, 10*time.Millisecond)
			close(hung)
			require.NoError(t, <-waited)
			require.Eventually(t, func() bool { return !l.Progress().Waiting }, 5*time.Second, time.Millisecond)
			require.NoError(t, l.Close())
		})
	}
}

// Updates that do not wait for an fsync in the background are not held up by it, until the promise
// to followers has to be renewed.
func TestProgressLeavesOutAnFsyncThatNobodyWaitsFor(t *testing.T) {
	disk := faultfs.New(vfs.OS{})
	now := time.Now()
	l := mustOpen(t, t.TempDir(), Options{FS: disk, SyncInterval: time.Hour, Now: func() time.Time { return now }})
	mustCommit(t, l, "a")
	require.NotZero(t, l.Promise(StampAt(now)))
	hung, begun := make(chan struct{}), make(chan struct{}, 10)
	disk.OnSync(func() { begun <- struct{}{}; <-hung })
	l.flush.kickSync()
	<-begun
	mustCommit(t, l, "b")
	require.False(t, l.Progress().Waiting)
	now = now.Add(time.Hour)
	promised := make(chan Stamp, 1)
	go func() { promised <- l.Promise(StampAt(now)) }()
	require.Eventually(t, stands(l), 5*time.Second, 10*time.Millisecond)
	close(hung)
	<-promised
	require.False(t, l.Progress().Waiting)
	require.NoError(t, l.Close())
}
