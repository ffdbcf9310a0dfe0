package db

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

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

// contents returns the records of a database, expired ones included, by key.
func contents(t testing.TB, d *DB) map[string]string {
	t.Helper()
	got := map[string]string{}
	require.NoError(t, d.store.Scan(store.Start{Edge: true}, func(key, stored []byte) bool {
		_, value, ok := d.split(stored)
		require.True(t, ok, "record %q has no prefix", key)
		got[string(key)] = string(value)
		return true
	}))
	n, err := d.Count()
	require.NoError(t, err)
	if d.expr.Kind != Text {
		require.Equal(t, int64(len(got)), n, "count")
	}
	return got
}

// image copies a directory as it is at this moment: what kill -9 leaves behind. Database files are copied again when
// a second checkpoint may have overwritten pages that the first half of the copy refers to.
func image(t testing.TB, from string) string {
	t.Helper()
	to := t.TempDir()
	require.NoError(t, filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // removed meanwhile
		}
		require.NoError(t, err)
		rel, err := filepath.Rel(from, path)
		require.NoError(t, err)
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return copyFile(path, filepath.Join(to, rel))
	}))
	return to
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer src.Close()
	var content bytes.Buffer
	if _, err := io.Copy(&content, src); err != nil {
		return err
	}
	return os.WriteFile(to, content.Bytes(), 0o644)
}
