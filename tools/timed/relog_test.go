package timed_test

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// The log of recover -ulog is a log of its own: it has the updates under the IDs of their servers.
func TestARelogNamesNoLogOfOrigin(t *testing.T) {
	dir := t.TempDir()
	log, err := ulog.Open(dir, ulog.Options{})
	require.NoError(t, err)
	_, err = log.Append([]ulog.Update{{SID: 1, Op: ulog.OpSet, Key: []byte("own"), Value: []byte("\xff\xff\xff\xff\xffv")}})
	require.NoError(t, err)
	_, err = log.Append([]ulog.Update{{SID: 2, Op: ulog.OpSet, Key: []byte("foreign"), Value: []byte("\xff\xff\xff\xff\xffv"),
		Origin: ulog.Origin{Log: 77, Stamp: 1_700_000_000_000_000_123}}})
	require.NoError(t, err)
	require.NoError(t, log.Close())
	again := filepath.Join(t.TempDir(), "again")
	res := command("", "recover", "-ulog", again, create(t), dir)
	require.Zero(t, res.exit, res.stderr)
	r, err := ulog.OpenReader(vfs.OS{}, again, 0, ulog.ReaderOptions{})
	require.NoError(t, err)
	for range 2 {
		e, err := r.Next()
		require.NoError(t, err)
		require.Zero(t, e.Origin.Log)
	}
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, r.Close())
}
