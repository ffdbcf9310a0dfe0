package paging

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
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
			wrong := ""
			for range 4 { // other programs may push pages out
				if wrong = scanOnce(t, path, values); wrong == "" {
					return
				}
			}
			t.Error(wrong)
		})
	}
}

// scanOnce scans a file of which nothing is in memory, and returns what is wrong with the pages that
// the scan remembers.
func scanOnce(t *testing.T, path string, values bool) (wrong string) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // advice
	require.NoError(t, f.Close())
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	defer db.Close()
	view(t, db, func(b *bolt.Bucket) {
		all := fileOf(b.Tx())
		if os.Getpagesize() != 4096 || absent(all, span{0, all.pages()}) < all.pages()/2 {
			t.Skip("the file system of TMPDIR does not give pages back, or nobody says so, or they have another size")
		}
		passages := Passages{Asked: new(atomic.Uint64)}
		var walks Walks
		var w Walk
		walks.Begin(&w, &passages, b, false)
		defer walks.End()
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
		require.Positive(t, passages.Asked.Load())
		require.LessOrEqual(t, passages.Asked.Load(), lent)
		if lost > lent/10 || values && lent < all.pages()/3 { // it was short for half of the way
			wrong = fmt.Sprintf("it remembers %d pages, of which %d are not in memory", lent, lost)
		}
	})
	return wrong
}

// absent returns how many pages are not in memory.
func absent(f file, all span) (n uint64) {
	eachAbsent(f, all, make([]byte, all.n), func(s span) { n += s.n })
	return n
}
