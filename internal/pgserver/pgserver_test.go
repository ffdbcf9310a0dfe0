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

// A guarded server lets in who has its password, and nobody else, also after another Create. The
// password is in a file that others cannot read, and not in the URL, which the list of processes
// shows.
func TestGuarded(t *testing.T) {
	if pgserver.Find() == "" {
		needs.Missing(t, "PostgreSQL", "postgresql")
	}
	dir, err := os.MkdirTemp("", "pgserver")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	psql := func(url string) (string, error) {
		cmd := exec.Command(filepath.Join(pgserver.Find(), "psql"), "-X", "-w", "-At", url, "-c", "SELECT current_user")
		cmd.Env = append(os.Environ(), "PGPASSFILE=/dev/null")
		said, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(said)), err
	}
	for range 2 {
		s, err := pgserver.Create(dir, pgserver.Options{Settings: []string{"fsync = off"}, Guarded: true})
		require.NoError(t, err)
		require.NoError(t, s.Start())
		said, err := psql(s.URL("postgres"))
		require.NoError(t, err, said)
		require.Equal(t, "postgres", said)
		said, err = psql("postgres://postgres@" + s.Addr() + "/postgres?sslmode=disable")
		require.Error(t, err)
		require.Contains(t, said, "no password supplied")
		require.NoError(t, s.Stop())
		secret, err := os.ReadFile(filepath.Join(dir, "pgpass"))
		require.NoError(t, err)
		require.NotContains(t, s.URL("postgres"), strings.TrimSpace(string(secret[strings.LastIndexByte(string(secret), ':')+1:])))
		for _, path := range []string{dir, filepath.Join(dir, "pgpass")} {
			at, err := os.Stat(path)
			require.NoError(t, err)
			require.Zero(t, at.Mode().Perm()&0o077, path)
		}
		require.NoFileExists(t, filepath.Join(dir, "password"))
	}
}

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
