package db

import (
	"errors"
	"fmt"
	"gotycoon/db/dberr"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file that cannot be made because the disk is full is not broken, and nothing of it stays.
func TestAFullDiskIsNoBrokenFile(t *testing.T) {
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", os.Getpagesize()))
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("a file system of a test's own needs root")
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })

	_, err = Open([]string{filepath.Join(dir, "a.kct")}, Options{})
	require.ErrorIs(t, err, syscall.ENOSPC)
	var e *dberr.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, dberr.SystemError, e.Code, err)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, names)
}
