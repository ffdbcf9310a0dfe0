package pgserver_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/needs"
	"gotycoon/internal/pgserver"
)

// A server keeps its data over a crash, and over another Create.
func TestServer(t *testing.T) {
	if pgserver.Find() == "" {
		needs.Missing(t, "PostgreSQL", "postgresql")
	}
	dir, err := os.MkdirTemp("", "pgserver")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	s, err := pgserver.Create(dir, pgserver.Options{Settings: []string{"fsync = off"}})
	require.NoError(t, err)
	require.NoError(t, s.Start())
	ask := func(sql string) string {
		said, err := exec.Command(filepath.Join(pgserver.Find(), "psql"), "-X", "-q", "-At", s.URL("postgres"), "-c", sql).CombinedOutput()
		require.NoError(t, err, string(said))
		return strings.TrimSpace(string(said))
	}
	ask("CREATE TABLE t AS SELECT 42 AS x")
	require.NoError(t, s.Crash())
	require.NoError(t, s.Start())
	require.Equal(t, "42 off", ask("SELECT x || ' ' || current_setting('fsync') FROM t"))
	require.NoError(t, s.Stop())
	s, err = pgserver.Create(dir, pgserver.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Start())
	defer func() { require.NoError(t, s.Stop()) }()
	require.Equal(t, "42", ask("SELECT x FROM t"))

	// Who starts a second one in the directory is told so, and the lock file of the first stays:
	// without its lock file PostgreSQL ends within a minute, as in a crash.
	lock := filepath.Join(dir, "data", "postmaster.pid")
	before, err := os.ReadFile(lock)
	require.NoError(t, err)
	second, err := pgserver.Create(dir, pgserver.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, second.Start(), fmt.Sprintf("another postmaster (PID %d)", s.PID()))
	after, err := os.ReadFile(lock)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}
