package db

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/db/expr"
	"gotycoon/db/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that tests move.
type clock struct{ seconds atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.seconds.Store(1_800_000_000)
	return c
}

func (c *clock) now() time.Time  { return time.Unix(c.seconds.Load(), 0) }
func (c *clock) advance(s int64) { c.seconds.Add(s) }

// mustOpen opens a catalog that the test closes.
func mustOpen(t testing.TB, o Options, exprs ...string) *Catalog {
	t.Helper()
	c, err := Open(exprs, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if c.quit != nil {
			require.NoError(t, c.Close())
		}
	})
	return c
}

// alone keeps the collector away from a database, so that a test may change what it is made of.
func alone(d *DB) {
	s := &d.sweeper
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collector = nil
	s.asked.Store(false)
	s.score.Store(0)
}

// contents returns the records of a database, expired ones included, by key.
func contents(t testing.TB, d *DB) map[string]string {
	t.Helper()
	got := map[string]string{}
	require.NoError(t, d.store.Scan(store.Start{Edge: true}, func(key, stored []byte) bool {
		_, value, ok := d.Split(stored)
		require.True(t, ok, "record %q has no prefix", key)
		got[string(key)] = string(value)
		return true
	}))
	n, err := d.Count(nil)
	require.NoError(t, err)
	if d.expr.Kind != expr.Text {
		require.Equal(t, int64(len(got)), n, "count")
	}
	return got
}

// image copies a directory as it is at one moment: what kill -9 leaves behind. A copy takes a
// while, and a checkpoint may meanwhile trim the log that a file copied earlier needs: the copy
// counts when a second look finds the same bytes.
func image(t testing.TB, from string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		first := readTree(t, from)
		if !maps.EqualFunc(first, readTree(t, from), bytes.Equal) {
			continue
		}
		to := t.TempDir()
		for name, content := range first {
			path := filepath.Join(to, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, content, 0o644))
		}
		return to
	}
	t.Fatal("the files never came to rest")
	return ""
}

// readTree returns the files of a directory by their path below it. Those that are removed
// meanwhile are left out.
func readTree(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && e.IsDir() {
			return nil
		}
		require.NoError(t, err)
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		files[name] = content
		return err
	}))
	return files
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// abandon ends a catalog as a crash does: files stay as they are.
func abandon(c *Catalog) { (&opening{Catalog: c, decided: true}).abandon() }
