package replsql_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// postgresCluster is a PostgreSQL server of the test in a temporary directory. It listens only on a
// socket there.
type postgresCluster struct {
	bin   string // where its programs are
	dir   string
	owner *syscall.Credential // whom it runs as; nil: as this process
	dbs   atomic.Int64
}

// startPostgres returns nil where there is no PostgreSQL.
func startPostgres() (*postgresCluster, error) {
	bin := postgresBin()
	if bin == "" {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "ktreplsql-")
	if err != nil {
		return nil, err
	}
	c := &postgresCluster{bin: bin, dir: dir}
	if err := c.chooseOwner(); err != nil {
		return nil, err
	}
	if err := c.pg("initdb", "-D", c.data(), "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync"); err != nil {
		return nil, err
	}
	return c, c.start()
}

func postgresBin() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well formed
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.Max(found))
}

// chooseOwner finds somebody else where we are root, whom PostgreSQL does not run as.
func (c *postgresCluster) chooseOwner() error {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid) // numbers on Unix
		gid, _ := strconv.Atoi(u.Gid)
		c.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return os.Chown(c.dir, uid, gid)
	}
	return fmt.Errorf("nobody is there to run PostgreSQL")
}

func (c *postgresCluster) data() string { return filepath.Join(c.dir, "data") }

// pg runs one of PostgreSQL's programs.
func (c *postgresCluster) pg(name string, args ...string) error {
	log, err := os.CreateTemp("", "ktreplsql-log-")
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = c.dir, &syscall.SysProcAttr{Credential: c.owner}
	cmd.Stdout, cmd.Stderr = log, log // a file: the server inherits it
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log.Name()) // the error says enough
		return fmt.Errorf("%s: %w\n%s", name, err, text)
	}
	return nil
}

func (c *postgresCluster) start() error {
	return c.pg("pg_ctl", "start", "-w", "-t", "60", "-D", c.data(), "-l", filepath.Join(c.dir, "log"),
		"-o", "-c listen_addresses='' -c unix_socket_directories='"+c.dir+"' -c fsync=off")
}

// kill ends PostgreSQL as a crash does.
func (c *postgresCluster) kill() error {
	return c.pg("pg_ctl", "stop", "-m", "immediate", "-w", "-D", c.data())
}

func (c *postgresCluster) remove() error {
	if c == nil {
		return nil
	}
	if err := c.pg("pg_ctl", "stop", "-m", "fast", "-w", "-D", c.data()); err != nil {
		return err
	}
	return os.RemoveAll(c.dir)
}

func (c *postgresCluster) url(db string) string {
	return fmt.Sprintf("postgres://tester@/%s?host=%s", db, c.dir)
}

// create makes a database.
func (c *postgresCluster) create(t *testing.T) (url string) {
	t.Helper()
	name := fmt.Sprintf("test%d", c.dbs.Add(1))
	conn, err := pgx.Connect(t.Context(), c.url("postgres"))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	return c.url(name)
}
