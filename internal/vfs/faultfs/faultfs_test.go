package faultfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

var errDisk = errors.New("input/output error")

func TestFaults(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	name := filepath.Join(t.TempDir(), "f")
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, fs.Lock(f, 0))

	fs.FailSync(2, errDisk)
	require.NoError(t, f.Sync())
	require.ErrorIs(t, f.Sync(), errDisk)
	require.ErrorIs(t, f.Sync(), errDisk, "and all after it")
	require.Equal(t, 3, fs.Syncs())

	fs.Space(5)
	n, err := f.WriteAt([]byte("abc"), 0)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	n, err = f.WriteAt([]byte("defg"), 3)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, 2, n)
	size, err := f.Size()
	require.NoError(t, err)
	require.Equal(t, int64(5), size)

	fs.FailWrite(1, errDisk)
	_, err = f.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, errDisk)
	require.Equal(t, 3, fs.Writes())

	fs.FailChange(2, errDisk)
	require.NoError(t, fs.Rename(name, name+"2"))
	require.ErrorIs(t, fs.Remove(name+"2"), errDisk)
	require.ErrorIs(t, f.Truncate(0), errDisk)
	require.ErrorIs(t, fs.SyncDir(filepath.Dir(name)), errDisk)
	_, err = fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	require.ErrorIs(t, err, errDisk)
	require.FileExists(t, name+"2")
}
