package paging

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// tree makes a file with a bucket of several levels, and returns it with its names.
func tree(t *testing.T, size int) (*bolt.DB, []string) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "a"), 0o600, &bolt.Options{NoSync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	var names []string
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("b"))
		if err != nil {
			return err
		}
		b.FillPercent = 1
		for i := range 20_000 {
			name := fmt.Sprintf("%08d", i*1000)
			names = append(names, name)
			if err := b.Put([]byte(name), []byte(fmt.Sprintf("%0*d", size, i))); err != nil {
				return err
			}
		}
		return nil
	}))
	return db, names
}

func view(t *testing.T, db *bolt.DB, f func(b *bolt.Bucket)) {
	t.Helper()
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		f(tx.Bucket([]byte("b")))
		return nil
	}))
}

// A descent meets the leaves that bbolt's cursor meets, in both directions.
func TestADescentMeetsAllLeaves(t *testing.T) {
	db, names := tree(t, 300)
	view(t, db, func(b *bolt.Bucket) {
		f := fileOf(b.Tx())
		for _, backward := range []bool{false, true} {
			c := b.Cursor()
			name, _ := c.First()
			step := c.Next
			if backward {
				name, _ = c.Last()
				step = c.Prev
			}
			d := descent{file: f}
			leaf, ok := d.seek(uint64(b.RootPage()), name, 0)
			require.True(t, ok)
			at, met := uint64(0), 0
			for ; name != nil; name, _ = step() {
				offset, ok := f.offset(name)
				require.True(t, ok)
				page := uint64(offset / f.page)
				if page == at {
					continue
				}
				if at != 0 {
					leaf, ok = d.next(backward, func(uint64) {})
					require.True(t, ok)
				}
				require.Equal(t, page, leaf, "%s", name)
				at = page
				met++
			}
			_, ok = d.next(backward, func(uint64) {})
			require.False(t, ok, "there is no leaf behind the last")
			require.Greater(t, met, len(names)/20)
		}
	})
}

// A guess is the block behind, for about half of the keys between two leaves with two blocks each.
// Most guesses are right, and seldom was there a right one where none was made.
func TestGuesses(t *testing.T) {
	db, names := tree(t, 2000-8)
	view(t, db, func(b *bolt.Bucket) {
		random := rand.New(rand.NewPCG(1, 2))
		guessed, right, missed, two := 0, 0, 0, 0
		const rounds = 20_000
		f := fileOf(b.Tx())
		var m Mirror
		for range rounds {
			n := random.IntN(len(names)-1)*1000 + 1 + random.IntN(999)
			name := []byte(fmt.Sprintf("%08d", n))
			d := descent{file: f}
			first, ok := d.seek(uint64(b.RootPage()), name, 0)
			require.True(t, ok)
			found, _ := b.Cursor().Seek(name)
			offset, _ := f.offset(found)
			needed := uint64(offset/f.page) != first
			if needed {
				two++
			}
			got, value, ok := m.Guess(b, name)
			switch {
			case ok:
				guessed++
				require.Equal(t, b.Get(got), value)
				require.LessOrEqual(t, string(name), string(got))
				if string(got) == string(found) {
					right++
				}
			case needed:
				missed++
			}
		}
		t.Logf("of %d lookups %d need the leaf behind; %d guesses, %d of them right, %d missing", rounds, two, guessed, right, missed)
		require.Greater(t, two, rounds/3, "bbolt reads two leaves for many names")
		require.Greater(t, right, guessed*9/10)
		require.Less(t, missed, two/10)
	})
}

// A mirror is touched at the branch pages and the value, and nowhere else: what is not in memory
// must not be touched.
func TestAMirrorIsTouchedWhereALookupReads(t *testing.T) {
	db, names := tree(t, 300)
	view(t, db, func(b *bolt.Bucket) {
		name := []byte(names[7777])
		value := b.Get(name)
		f := fileOf(b.Tx())
		d := descent{file: f}
		leaf, ok := d.seek(uint64(b.RootPage()), name, 0)
		require.True(t, ok)
		m := Mirror{data: make([]byte, len(f.data))}
		at, ok := f.offset(value)
		require.True(t, ok)
		m.data[at] += 100
		for page := uint64(b.RootPage()); page != leaf; {
			m.data[int(page)*f.page] += 10
			branch, ok := f.branch(page)
			require.True(t, ok)
			page = branch.child(branch.find(name))
		}
		require.GreaterOrEqual(t, len(d.way), 2)
		require.EqualValues(t, 100+10*len(d.way), m.Read(b, name, value))
		require.Zero(t, m.Read(b, name, make([]byte, 10)), "a value that is not in the file")
		empty := f.data[4*f.page : 4*f.page] // behind its key, which is at the end of a page
		m.data[4*f.page-1]++
		require.EqualValues(t, 1+10*len(d.way), m.Read(b, name, empty))
		short := Mirror{}
		require.Zero(t, short.Read(b, name, value), "a file that has outgrown the mirror")
	})
}

// Damaged pages lead nowhere, and nothing outside the file is touched.
func TestDamagedPagesLeadNowhere(t *testing.T) {
	db, names := tree(t, 300)
	view(t, db, func(b *bolt.Bucket) {
		whole := fileOf(b.Tx())
		root := uint64(b.RootPage())
		random := rand.New(rand.NewPCG(1, 2))
		f := file{bytes.Clone(whole.data), whole.page}
		var changed []int
		for range 300 {
			for _, at := range changed {
				f.data[at] = whole.data[at]
			}
			changed = changed[:0]
			for range 200 { // anywhere in the pages at the top
				page := root
				for range random.IntN(3) {
					if br, ok := f.branch(page); ok {
						page = br.child(random.IntN(br.n))
					}
				}
				if page < f.pages() {
					at := int(page)*f.page + random.IntN(64)
					f.data[at] = byte(random.Uint32())
					changed = append(changed, at)
				}
			}
			d := descent{file: f}
			name := []byte(names[random.IntN(len(names))])
			if _, ok := d.seek(root, name, 0); !ok {
				continue
			}
			for range 50 {
				if _, ok := d.next(false, func(uint64) {}); !ok {
					break
				}
			}
			f.branchesAbove(root, name)
			f.firstElement(random.Uint64N(f.pages()))
		}
	})
}
