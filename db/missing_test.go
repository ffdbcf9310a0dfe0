package db_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/internal/vfs"
)

func TestAFileThatTheLogHadIsMissed(t *testing.T) {
	dir := t.TempDir()
	log, a, b := filepath.Join(dir, "ulog"), filepath.Join(dir, "a.kct"), filepath.Join(dir, "b.kct")
	missing := func(texts ...string) []string {
		t.Helper()
		paths, err := db.Missing(vfs.OS{}, log, texts)
		require.NoError(t, err)
		return paths
	}
	require.Empty(t, missing(a), "nothing is there yet")
	c, err := db.Open([]string{a}, db.Options{LogDir: log})
	require.NoError(t, err)
	require.NoError(t, c.DB(0).Set(nil, []byte("k"), []byte("v"), record.Never))
	require.NoError(t, c.Close())
	require.Empty(t, missing(a, b), "b is a new database")
	require.NoError(t, os.Remove(a))
	require.Equal(t, []string{a}, missing(a, b))
}
