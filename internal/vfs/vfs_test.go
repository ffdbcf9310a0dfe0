package vfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

var errDisk = errors.New("input/output error")

func TestWriteFileAtomic(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	require.NoError(t, vfs.WriteFileAtomic(vfs.OS{}, name, []byte("first, and longer")))
	require.NoError(t, vfs.WriteFileAtomic(vfs.OS{}, name, []byte("second")))
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "second", string(b))
}

// TestWriteFileAtomicFails leaves the old content when anything goes wrong, and nothing beside it.
func TestWriteFileAtomicFails(t *testing.T) {
	faults := map[string]func(fs *faultfs.FS){
		"write": func(fs *faultfs.FS) { fs.FailWrite(1, errDisk) },
		"sync":  func(fs *faultfs.FS) { fs.FailSync(1, errDisk) },
		"space": func(fs *faultfs.FS) { fs.Space(3) },
	}
	for kind, fault := range faults {
		t.Run(kind, func(t *testing.T) {
			dir, fs := t.TempDir(), faultfs.New(vfs.OS{})
			name := filepath.Join(dir, "f")
			require.NoError(t, vfs.WriteFileAtomic(fs, name, []byte("old")))
			fault(fs)
			require.Error(t, vfs.WriteFileAtomic(fs, name, []byte("new content")))
			b, err := os.ReadFile(name)
			require.NoError(t, err)
			require.Equal(t, "old", string(b))
			names, err := fs.ReadDir(dir)
			require.NoError(t, err)
			require.Equal(t, []string{"f"}, names)
		})
	}
}

func TestFile(t *testing.T) {
	fs, dir := vfs.OS{}, filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, fs.MkdirAll(dir, 0o755))
	name := filepath.Join(dir, "f")
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("hello"), 3)
	require.NoError(t, err)
	require.NoError(t, f.(vfs.Starter).StartSync())
	require.NoError(t, f.Sync())
	size, err := f.Size()
	require.NoError(t, err)
	require.Equal(t, int64(8), size)
	require.NoError(t, f.Truncate(5))
	require.NoError(t, f.Close())
	require.Error(t, f.Sync())
	_, err = f.Size()
	require.Error(t, err)
	fi, err := fs.Stat(name)
	require.NoError(t, err)
	require.Equal(t, int64(5), fi.Size())
	require.NoError(t, fs.Rename(name, name+"2"))
	names, err := fs.ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"f2"}, names)
	require.NoError(t, fs.Remove(name+"2"))
	require.NoError(t, fs.SyncDir(dir))
	_, err = fs.OpenFile(name, os.O_RDONLY, 0)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLock(t *testing.T) {
	fs, name := vfs.OS{}, filepath.Join(t.TempDir(), "f")
	open := func() vfs.File {
		f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
		require.NoError(t, err)
		return f
	}
	first, second, third := open(), open(), open()
	require.NoError(t, fs.Lock(first, 0))
	require.ErrorIs(t, fs.Lock(second, 0), vfs.ErrLocked)
	require.NoError(t, third.Close())
	require.ErrorIs(t, fs.Lock(second, 30*time.Millisecond), vfs.ErrLocked, "closing another descriptor releases nothing")
	locked := make(chan error)
	go func() { locked <- fs.Lock(second, 10*time.Second) }()
	require.NoError(t, first.Close())
	require.NoError(t, <-locked)
	require.NoError(t, second.Close())
}
