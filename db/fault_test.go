package db

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/record"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

// TestFailedLogIsFinal makes a write or a sync of the log fail. What must hold: the update is not
// acknowledged, nor is any later one, also when the disk works again; the catalog says so; and
// after a restart everything acknowledged is there.
func TestFailedLogIsFinal(t *testing.T) {
	broken := errors.New("input/output error")
	for _, tc := range []struct {
		name  string
		each  bool
		fail  func(fs *faultfs.FS, n int)
		wants error
	}{
		{"write", false, func(fs *faultfs.FS, n int) { fs.FailWrite(n, broken) }, broken},
		{"write with oas", true, func(fs *faultfs.FS, n int) { fs.FailWrite(n, broken) }, broken},
		{"sync with oas", true, func(fs *faultfs.FS, n int) { fs.FailSync(n, broken) }, broken},
		{"no space", false, func(fs *faultfs.FS, n int) { fs.Space(int64(100 * n)) }, syscall.ENOSPC},
	} {
		for _, n := range []int{1, 2, 7} {
			t.Run(fmt.Sprintf("%s %d", tc.name, n), func(t *testing.T) {
				dir, fs := t.TempDir(), faultfs.New(vfs.OS{})
				path := filepath.Join(dir, "f.kct")
				c := mustOpen(t, Options{FS: fs, SyncEach: tc.each, LogDir: filepath.Join(dir, "ulog")}, path)
				tc.fail(fs, n)
				acknowledged := failingSets(t, c.DB(0), tc.wants)
				tc.fail(fs, 1<<20) // the disk works again
				require.ErrorIs(t, c.DB(0).Set(nil, []byte("later"), nil, record.Never), tc.wants)
				select {
				case <-c.Failed():
					require.ErrorIs(t, c.Err(), tc.wants)
				case <-time.After(10 * time.Second):
					require.Fail(t, "the catalog does not say that its log has failed")
				}
				require.Error(t, c.Close())
				c = mustOpen(t, in(dir), path)
				got := contents(t, c.DB(0))
				for i := range acknowledged {
					require.Contains(t, got, fmt.Sprint(i))
				}
				require.NotContains(t, got, "later")
			})
		}
	}
}

// failingSets stores records until one is refused, and returns how many were acknowledged.
func failingSets(t *testing.T, d *DB, want error) int {
	t.Helper()
	for i := range 1000 {
		if err := d.Set(nil, fmt.Append(nil, i), []byte("value of a record"), record.Never); err != nil {
			require.ErrorIs(t, err, want)
			return i
		}
	}
	require.Fail(t, "no write failed")
	return 0
}
