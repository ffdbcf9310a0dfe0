package ulog

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/crashfs"
	"gotycoon/internal/vfs/faultfs"
)

// writeMuch commits updates of so many bytes, in groups.
func writeMuch(t *testing.T, l *Log, size int) {
	for n := 0; n < size; n += earlySize / 8 {
		require.NoError(t, writeSome(l))
	}
}

// writeSome commits an update of an eighth of earlySize.
func writeSome(l *Log) error {
	at, err := l.Append([]Update{{SID: 1, Op: OpSet, Key: []byte("k"), Value: make([]byte, earlySize/8)}})
	if err != nil {
		return err
	}
	return l.Wait(at)
}

// The disk begins with what is written long before the log is synced, segment by segment.
func TestDiskBeginsEarly(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	l := mustOpen(t, t.TempDir(), Options{FS: fs, SyncInterval: time.Hour, Limit: 2 * earlySize})
	defer func() { require.NoError(t, l.Close()) }()
	writeMuch(t, l, earlySize/2)
	require.Zero(t, fs.Starts(), "the disk need not begin with little")
	for i := range 5 {
		writeMuch(t, l, 2*earlySize)
		within(t, "the disk begins again", func() bool { return fs.Starts() > i })
	}
}

func TestDiskBeginsWithNothingThatIsSynced(t *testing.T) {
	dir := t.TempDir()
	disk, err := crashfs.New(dir) // whose syncs take no time
	require.NoError(t, err)
	fs := faultfs.New(disk)
	l := mustOpen(t, dir, Options{FS: fs, SyncEach: true})
	writeMuch(t, l, 4*earlySize)
	require.NoError(t, l.Close())
	require.Zero(t, fs.Starts())
}

// A disk that fails to begin is one that fails: nothing is acknowledged any more.
func TestDiskFailsToBegin(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	l := mustOpen(t, t.TempDir(), Options{FS: fs, SyncInterval: time.Hour})
	fs.FailStart(errDisk)
	within(t, "the log ends", func() bool {
		err := writeSome(l)
		require.True(t, err == nil || errors.Is(err, errDisk), "%v", err)
		return l.Err() != nil
	})
	require.ErrorIs(t, l.Err(), errDisk)
	require.Error(t, l.Close())
}
