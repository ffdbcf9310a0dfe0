package klog_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/klog"
)

func TestReopenContinuesInANewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	require.NoError(t, os.WriteFile(path, []byte("kept\n"), 0o600))
	f, err := klog.OpenFile(path)
	require.NoError(t, err)
	write(t, f, "one\n")

	require.NoError(t, os.Rename(path, path+".old"))
	write(t, f, "two\n")
	require.NoError(t, f.Reopen())
	write(t, f, "three\n")
	require.NoError(t, f.Close())

	requireContent(t, path+".old", "kept\none\ntwo\n")
	requireContent(t, path, "three\n")
}

func TestReopenKeepsTheOldFileWhenItCannotHaveANewOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	require.NoError(t, os.Mkdir(dir, 0o700))
	f, err := klog.OpenFile(filepath.Join(dir, "a.log"))
	require.NoError(t, err)
	require.NoError(t, os.Rename(dir, dir+"2"))
	require.Error(t, f.Reopen())
	write(t, f, "still here\n")
	require.NoError(t, f.Close())
	requireContent(t, filepath.Join(dir+"2", "a.log"), "still here\n")
}

func TestOpenFileReportsAMissingDirectory(t *testing.T) {
	_, err := klog.OpenFile(filepath.Join(t.TempDir(), "nodir", "a.log"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func write(t *testing.T, f *klog.File, s string) {
	t.Helper()
	_, err := f.Write([]byte(s))
	require.NoError(t, err)
}

func requireContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}
