package memstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// Full leaves, which cannot be merged, become empty one after the other, and so do inner pages
// above them. Keys with other prefixes then come to their neighbours.
func TestPagesBetweenFullOnesDisappear(t *testing.T) {
	for name, prefix := range map[string]string{
		"wide tree": "",
		"deep tree": strings.Repeat("x", 200), // separators are long, inner pages have few children
	} {
		t.Run(name, func(t *testing.T) {
			m := &model{store: NewTreeStore(), order: strings.Compare, want: map[string]string{}}
			defer m.store.Close() // always nil
			key := func(i int) string { return fmt.Sprintf("%s%05d/%03d", prefix, i/10, i%10) }
			r := rand.New(rand.NewPCG(5, 6))
			for round := range 6 {
				removePart(t, m, key, r, round)
			}
		})
	}
}

// removePart fills a tree in order and removes a part of it, in order, against it or at random.
func removePart(t *testing.T, m *model, key func(int) string, r *rand.Rand, round int) {
	const n = 14000
	for i := range n {
		m.apply(set(key(i), strings.Repeat("v", 100)))
	}
	begin, size := r.IntN(n), n/(1+r.IntN(10))
	if round == 0 {
		begin = 0 // the left edge
	}
	var part []int
	for i := begin; i < min(begin+size, n); i++ {
		part = append(part, i)
	}
	switch round % 3 {
	case 1:
		slices.Reverse(part)
	case 2:
		r.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	}
	for i, k := range part {
		m.apply(update.Update{Op: update.OpRemove, Key: []byte(key(k))})
		if i%(1+len(part)/10) == 0 {
			m.apply(set(key(k)+"between", "value"))
			checkStore(t, m.store)
			m.apply(update.Update{Op: update.OpRemove, Key: []byte(key(k) + "between")})
		}
	}
	m.compare(t)
	m.compareScan(t, store.Start{Key: []byte(key(begin)), Inclusive: true})
	m.compareScan(t, store.Start{Key: []byte(key(begin)), Backward: true})
}

// A scan of a big table lets go of the lock between, and goes on where it was.
func TestScanOfBigTables(t *testing.T) {
	h := NewHash(HashOptions{})
	defer h.Close() // always nil
	var ups []update.Update
	for i := range 2 * scanBatch * tableCount {
		ups = append(ups, set(fmt.Sprint(i), ""))
	}
	h.Apply(0, ups)
	checkStore(t, h)
	seen := make(map[string]bool, len(ups))
	_ = h.Scan(store.Start{Edge: true}, func(key, _ []byte) bool {
		must(t, !seen[string(key)], "a record was visited twice")
		seen[string(key)] = true
		return true
	})
	require.Len(t, seen, len(ups))
}

func TestKeysOfOneHashAreInByteOrder(t *testing.T) {
	x := newIndex(0)
	at := x.arena.Alloc(recordSize([]byte("key"), nil))
	putRecord(x.arena.Bytes(at), []byte("key"), nil)
	hash := x.hash([]byte("key"))
	for _, c := range []struct {
		hash uint64
		key  string
		want int
	}{
		{hash, "key", 0}, {hash, "kez", -1}, {hash, "kex", 1}, {hash, "", 1}, {hash + 1, "a", -1}, {hash - 1, "z", 1},
	} {
		require.Equal(t, c.want, x.compare(at, c.hash, []byte(c.key)), "%+v", c)
	}
	x.reset(slab.New()).Release()
}

// A table works when all its slots are crowded at one end.
func TestTableWithOneHome(t *testing.T) {
	a := slab.New()
	defer a.Release()
	for _, frag := range []uint64{0, 1<<fragBits - 1} {
		var tab table
		for i := range uint64(500) {
			s := frag<<slab.AddrBits | (i + 1)
			if tab.crowded() {
				tab.grow(a)
			}
			for !tab.insert(tab.first(frag), s) {
				tab.lengthen(a)
			}
		}
		require.Equal(t, 500, tab.n)
		for i := uint64(500); i > 0; i-- { // inserted before each other
			at := tab.first(frag)
			require.Equal(t, i, tab.slot(at)&addrMask)
			tab.remove(at)
		}
		tab.free(a)
	}
	require.Zero(t, a.Used())
}
