// Package pgtest gives tests a PostgreSQL.
//
// A package of tests has one server, in a variable of its test files, which begins with the first
// test that wants it and ends with Main. Each test has databases of its own.
package pgtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"gotycoon/internal/needs"
	"gotycoon/internal/pgserver"
)

// fast returns settings of servers that need not survive the machine's end. What was acknowledged
// survives the end of PostgreSQL all the same.
func fast(more ...string) []string {
	return append([]string{
		"fsync = off", "full_page_writes = off", "shared_buffers = 64MB", "max_connections = 300",
		"max_wal_size = 256MB", "wal_level = replica", "max_wal_senders = 4", "log_checkpoints = off",
	}, more...)
}

// Shared is the server of all tests of a package. The zero value is one that has not begun.
type Shared struct {
	mu     sync.Mutex
	server *pgserver.Server
}

// Main runs the tests of a package and returns their exit code. TestMain calls it.
func (s *Shared) Main(m *testing.M) int {
	defer func() {
		if s.server != nil {
			remove(s.server)
		}
	}()
	return m.Run()
}

// remove ends a server, removes its files and gives its port back.
func remove(s *pgserver.Server) {
	_ = s.Crash()
	s.Release()
	_ = os.RemoveAll(s.Dir())
}

// URL returns that of a new, empty database of the server.
func (s *Shared) URL(tb testing.TB) string {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		s.server = start(tb)
	}
	return Database(tb, s.server)
}

// Database makes a database in a server and returns its URL. As in docs/engines.md, nobody but its
// owner and administrators may connect.
func Database(tb testing.TB, s *pgserver.Server) string {
	tb.Helper()
	name := fmt.Sprintf("t%016x", rand.Uint64())
	c, err := pgx.Connect(context.Background(), s.URL("postgres"))
	if err == nil {
		for _, statement := range []string{"CREATE DATABASE " + name, "REVOKE ALL ON DATABASE " + name + " FROM PUBLIC"} {
			if err == nil {
				_, err = c.Exec(context.Background(), statement)
			}
		}
		_ = c.Close(context.Background())
	}
	if err != nil {
		tb.Fatal(err)
	}
	return s.URL(name)
}

// Own starts a server that one test may crash. It ends with the test.
func Own(tb testing.TB, settings ...string) *pgserver.Server {
	tb.Helper()
	s := start(tb, settings...)
	tb.Cleanup(func() { remove(s) })
	return s
}

// Standby starts a synchronous standby of a server, which ends with the test.
func Standby(tb testing.TB, s *pgserver.Server) *pgserver.Server {
	tb.Helper()
	b, err := s.Standby(dir(tb), pgserver.Options{Settings: fast()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { remove(b) })
	return b
}

func start(tb testing.TB, settings ...string) *pgserver.Server {
	tb.Helper()
	if pgserver.Find() == "" {
		needs.Missing(tb, "PostgreSQL", "postgresql")
	}
	s, err := pgserver.Create(dir(tb), pgserver.Options{Settings: fast(settings...)})
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// dir returns a directory that another user can be given, which those of tb.TempDir cannot: their
// parents are the tests' alone.
func dir(tb testing.TB) string {
	path, err := os.MkdirTemp("", "pg")
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Keep copies the files of a server that does not run. The function that it returns puts them back,
// while the server does not run: it has forgotten what came later.
func Keep(tb testing.TB, s *pgserver.Server) (back func()) {
	tb.Helper()
	kept, data := filepath.Join(s.Dir(), "kept"), filepath.Join(s.Dir(), "data")
	copied := func(from, to string) {
		tb.Helper()
		if err := os.RemoveAll(to); err != nil {
			tb.Fatal(err)
		}
		if said, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil { // with its owner
			tb.Fatalf("cp: %v: %s", err, said)
		}
	}
	copied(data, kept)
	return func() { copied(kept, data) }
}
