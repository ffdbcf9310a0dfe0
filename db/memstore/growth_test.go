package memstore

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// keyForms are ways to make keys of numbers.
var keyForms = map[string]func(i int) string{
	"ascending":  func(i int) string { return fmt.Sprintf("user:%010d", i) },
	"descending": func(i int) string { return fmt.Sprintf("user:%010d", 1<<30-i) },
	"random": func(i int) string {
		var b [16]byte
		r := rand.New(rand.NewPCG(uint64(i), 7))
		binary.BigEndian.PutUint64(b[:], r.Uint64())
		binary.BigEndian.PutUint64(b[8:], r.Uint64())
		return string(b[:])
	},
	"long":    func(i int) string { return fmt.Sprintf("%0600d", i*7919%10007) },
	"streams": func(i int) string { return fmt.Sprintf("stream%d/%08d", i%7, i/7) },
}

// Stores grow to many pages and tables, are thinned out, and emptied.
func TestGrowthAndDecline(t *testing.T) {
	for _, k := range kinds {
		for form, keyOf := range keyForms {
			t.Run(k.name+" "+form, func(t *testing.T) {
				m := &model{store: k.open(), order: k.order, want: map[string]string{}}
				growAndDecline(t, m, keyOf)
			})
		}
	}
}

func growAndDecline(t *testing.T, m *model, keyOf func(int) string) {
	const n = 6000
	r := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		m.apply(set(keyOf(i), fmt.Sprint("value", i)))
	}
	m.compare(t)
	full := m.store.Size()
	for i := range n { // overwrite some with other sizes
		if r.IntN(4) == 0 {
			m.apply(set(keyOf(i), string(make([]byte, r.IntN(900)))))
		}
	}
	m.compare(t)
	for i := range n {
		if r.IntN(10) > 0 {
			m.apply(update.Update{Op: update.OpRemove, Key: []byte(keyOf(i))})
		}
	}
	m.compare(t)
	keys := m.keys(t)
	for range 20 {
		from := store.Start{Key: []byte(keyOf(r.IntN(n))), Inclusive: r.IntN(2) == 0}
		m.compareScan(t, from)
		from.Backward = m.order != nil
		m.compareScan(t, from)
	}
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, k := range keys {
		m.apply(update.Update{Op: update.OpRemove, Key: []byte(k)})
	}
	m.compare(t)
	require.Zero(t, m.store.Size(), "of %d", full)
	require.NoError(t, m.store.Close())
}

func set(key, value string) update.Update {
	return update.Update{Op: update.OpSet, Key: []byte(key), Value: []byte(value)}
}

// leaves returns the leaves' sizes and live bytes.
func leaves(tree *Tree) (n, size, live int) {
	var visit func(p page)
	visit = func(p page) {
		if p.leaf() {
			n, size, live = n+1, size+len(p), live+p.live()
			return
		}
		for i := range p.count() {
			visit(pageAt(tree.arena, p.child(tree.arena, i)))
		}
	}
	visit(pageAt(tree.arena, tree.root))
	return n, size, live
}

func TestLeavesHaveLittleSlack(t *testing.T) {
	for form, keyOf := range keyForms {
		if form == "long" {
			continue // its keys are elsewhere
		}
		t.Run(form, func(t *testing.T) {
			tree := NewTree()
			defer tree.Free()
			for i := range 50000 {
				tree.Put([]byte(keyOf(i)), make([]byte, 100))
			}
			checkTree(t, tree)
			n, size, live := leaves(tree)
			require.Less(t, float64(size), 1.14*float64(live))
			if form != "random" {
				require.Greater(t, live/n, pageMax*9/10, "leaves left behind by ordered inserts are full")
			}
		})
	}
}

func TestScanFromEveryKeyOfAHash(t *testing.T) {
	h := NewHash(HashOptions{})
	for i := range 3000 {
		h.Apply(0, []update.Update{set(fmt.Sprint(i), "")})
	}
	all := scanKeys(t, h, store.Start{Edge: true})
	for i := 0; i < len(all); i += 7 {
		require.Equal(t, all[i:], scanKeys(t, h, store.Start{Key: []byte(all[i]), Inclusive: true}))
		require.Equal(t, all[i+1:], append([]string{}, scanKeys(t, h, store.Start{Key: []byte(all[i])})...))
	}
	require.True(t, slices.IsSortedFunc(all, func(a, b string) int {
		x, y := h.index.hash([]byte(a)), h.index.hash([]byte(b))
		if x < y {
			return -1
		}
		return 1
	}))
}
