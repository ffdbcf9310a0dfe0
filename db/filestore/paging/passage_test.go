package paging

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// A forest is a file whose leaves are walked from one to another.
type forest struct {
	t        *testing.T
	db       *bolt.DB
	leaves   [][]byte // the first name of each
	passages Passages
}

func newForest(t *testing.T) *forest {
	t.Helper()
	if !supported {
		t.Skip("nobody watches scans here")
	}
	db, _ := tree(t, 300)
	f := &forest{t: t, db: db}
	view(t, db, func(b *bolt.Bucket) {
		file := fileOf(b.Tx())
		c, at := b.Cursor(), 0
		for name, _ := c.First(); name != nil; name, _ = c.Next() {
			offset, ok := file.offset(name)
			require.True(t, ok)
			if page := offset / file.page; page != at {
				at = page
				f.leaves = append(f.leaves, name)
			}
		}
	})
	require.Greater(t, len(f.leaves), 1000)
	return f
}

// scan goes through some leaves in one transaction.
func (f *forest) scan(leaves ...int) {
	f.t.Helper()
	view(f.t, f.db, func(b *bolt.Bucket) {
		var walks Walks
		f.walk(b, &walks, leaves...)
		walks.End()
	})
}

func (f *forest) walk(b *bolt.Bucket, walks *Walks, leaves ...int) *Walk {
	f.t.Helper()
	w, c := new(Walk), b.Cursor()
	walks.Begin(w, &f.passages, b, false)
	for _, i := range leaves {
		name, _ := c.Seek(f.leaves[i]) // in the map of this transaction
		w.At(name)
	}
	return w
}

// known are the scans that are remembered.
func (f *forest) known() (long, all int) {
	for _, list := range f.passages.parked {
		for _, p := range list {
			if all++; p.passed >= longScan {
				long++
			}
		}
	}
	return long, all
}

// No more scans are remembered than there is room for, and none that have come to their end.
func TestFewScansAreRemembered(t *testing.T) {
	f := newForest(t)
	view(t, f.db, func(b *bolt.Bucket) {
		var walks Walks
		for i := range 3 * parked { // all at the same time
			f.walk(b, &walks, i, i+1)
		}
		walks.End()
	})
	_, all := f.known()
	require.LessOrEqual(t, all, 2*parked)
	before := all
	view(t, f.db, func(b *bolt.Bucket) {
		var walks Walks
		for range 10 {
			f.walk(b, &walks, len(f.leaves)-2, len(f.leaves)-1).Over()
		}
		walks.End()
	})
	_, all = f.known()
	require.LessOrEqual(t, all, before)
	view(t, f.db, func(b *bolt.Bucket) {
		for range 10 {
			var walks Walks
			w := new(Walk)
			walks.Begin(w, &f.passages, b, false)
			w.Before(f.leaves[0])
			w.Before(f.leaves[500])
			walks.End()
		}
	})
	_, all = f.known()
	require.LessOrEqual(t, all, before, "nobody goes on with lookups")
	for range 3 * parked {
		f.passages.park(&passage{passed: longScan, at: rand.Uint64()})
	}
	_, all = f.known()
	require.LessOrEqual(t, all, 2*parked)
}

// A cursor that takes a record at a time is one long scan, however many short scans there are
// between two of its steps, and however many long ones nobody goes on with.
func TestShortScansDoNotMakeALongOneForgotten(t *testing.T) {
	f := newForest(t)
	for range parked {
		f.passages.park(&passage{passed: longScan, at: 1 << 40})
	}
	random := rand.New(rand.NewPCG(1, 2))
	short := func(n int) {
		for range n {
			i := 300 + random.IntN(len(f.leaves)-310)
			f.scan(i, i+1, i+2)
		}
	}
	for i := range 200 {
		f.scan(i, i+1)
		if i <= longScan {
			short(parked / 2)
		} else {
			short(parked + 10)
		}
	}
	passed := 0
	for _, list := range f.passages.parked {
		for _, p := range list {
			passed = max(passed, p.passed)
		}
	}
	require.Equal(t, 200, passed, "the cursor's")
}

// A short scan stays short, however often it comes.
func TestAShortScanThatIsRepeatedStaysShort(t *testing.T) {
	f := newForest(t)
	for _, scans := range [][][]int{{{10, 11}}, {{10, 11, 12}}, {{10, 11}, {11, 12}}, {{10, 11}, {10, 11, 12}, {11, 12}}} {
		for range 3 * longScan {
			for _, leaves := range scans {
				f.scan(leaves...)
			}
		}
		long, _ := f.known()
		require.Zero(t, long, "%v", scans)
	}
}

// A scan in pieces, each of which begins before the record at which the piece before has stopped,
// is a long one.
func TestPiecesThatLookAheadAreOneScan(t *testing.T) {
	f := newForest(t)
	for i := range 2 * longScan {
		f.scan(i, i+1, i+2)
	}
	long, _ := f.known()
	require.Equal(t, 1, long)
}
