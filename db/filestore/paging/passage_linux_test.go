package paging

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// A scan gives back what it has brought. A scan for keys does not bring the values that take many
// pages; a scan that reads them does.
func TestAScanRemembersOnlyWhatItBrings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("b"))
		for i := 0; i < 2*longScan && err == nil; i++ {
			err = b.Put([]byte(fmt.Sprintf("%08d", i)), make([]byte, 100<<10))
		}
		return err
	}))
	require.NoError(t, db.Close())
	for _, values := range []bool{false, true} {
		t.Run(fmt.Sprintf("values=%t", values), func(t *testing.T) {
			f, err := os.Open(path)
			require.NoError(t, err)
			require.NoError(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
			require.NoError(t, f.Close())
			db, err := bolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			defer db.Close()
			view(t, db, func(b *bolt.Bucket) {
				all := fileOf(b.Tx())
				if absent(all, span{0, all.pages()}) < all.pages()/2 {
					t.Skip("the file system of TMPDIR does not give pages back, or nobody says so")
				}
				var passages Passages
				var walks Walks
				var w Walk
				walks.Begin(&w, &passages, b, false)
				w.Hold()
				c, sum := b.Cursor(), byte(0)
				for name, value := c.First(); name != nil; name, value = c.Next() {
					w.At(name)
					for i := 0; values && i < len(value); i += 1000 {
						sum += value[i]
					}
				}
				require.Zero(t, sum)
				lent, lost := uint64(0), uint64(0)
				for _, s := range w.passage.lent {
					lent += s.n
					lost += absent(all, s)
				}
				t.Logf("%d of %d pages, %d of them not in memory", lent, all.pages(), lost)
				require.LessOrEqual(t, lost, lent/10)
				if values {
					require.Greater(t, lent, all.pages()/3) // half of the scan, before it was long, counts for nothing
				}
				walks.End()
			})
		})
	}
}

// absent returns how many pages are not in memory.
func absent(f file, all span) (n uint64) {
	eachAbsent(f, all, make([]byte, all.n), func(s span) { n += s.n })
	return n
}
