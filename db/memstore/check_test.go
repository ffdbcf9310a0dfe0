package memstore

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/memstore/slab"
)

// checkStore checks the inner structure of a store.
func checkStore(t require.TestingT, s any) {
	switch s := s.(type) {
	case *Hash:
		checkIndex(t, s.index, s.count.Load())
	case *Cache:
		checkIndex(t, s.index, s.count.Load())
		checkLists(t, s)
	case *TreeStore:
		checkTree(t, &s.tree)
	}
}

// must fails a test. In loops over all records it saves the time that require takes even for what
// is right.
func must(t require.TestingT, ok bool, what string) {
	if !ok {
		require.Fail(t, what)
	}
}

// checkIndex checks the invariants of the tables, the order, and that no block is lost.
func checkIndex(t require.TestingT, x *index, count int64) {
	var used, records int64
	for i := range x.tables {
		tab := &x.tables[i]
		if tab.at != 0 {
			used += int64(len(tab.slots))
		}
		records += int64(tab.n)
		used += checkTable(t, x, i, tab)
	}
	require.Equal(t, count, records)
	require.Equal(t, x.arena.Used(), used, "blocks were lost")
}

func checkTable(t require.TestingT, x *index, number int, tab *table) (used int64) {
	n, last := 0, -1
	var lastHash uint64
	var lastKey []byte
	for i := range tab.size() {
		s := tab.slot(i)
		if s == 0 {
			last = i
			continue
		}
		at := slab.Addr(s & addrMask)
		key, _ := x.record(at)
		hash := x.hash(key)
		must(t, number == tableOf(hash), "the wrong table")
		must(t, fragOf(hash) == s>>slab.AddrBits, "the wrong fragment")
		home := tab.home(s >> slab.AddrBits)
		must(t, home <= i, "a record before its home")
		must(t, home > last, "an empty slot between a record and its home")
		if n > 0 {
			must(t, lastHash < hash || lastHash == hash && bytes.Compare(lastKey, key) < 0, "order")
		}
		lastHash, lastKey = hash, key
		used += x.blockSize(at)
		n++
	}
	must(t, tab.n == n, "the number of records")
	if tab.size() > 0 {
		require.Zero(t, tab.slot(tab.size()-1))
	}
	return used
}

// checkLists checks that the lists have all records of their slots, both ways.
func checkLists(t require.TestingT, c *Cache) {
	var total int64
	for i := range c.slots {
		s := &c.slots[i]
		var n, size int64
		var newerOne slab.Addr
		for at := s.used.newest; at != 0; at = link(c.index.arena, at, older) {
			must(t, newerOne == link(c.index.arena, at, newer), "links disagree")
			newerOne = at
			n++
			size += c.index.blockSize(at) + indexShare
		}
		require.Equal(t, s.used.oldest, newerOne)
		require.Equal(t, s.count, n)
		require.Equal(t, s.bytes, size)
		total += n
	}
	require.Equal(t, c.count.Load(), total)
}

// treeCheck walks through a Tree.
type treeCheck struct {
	t       require.TestingT
	tree    *Tree
	used    int64
	records int
}

func checkTree(t require.TestingT, tree *Tree) {
	c := treeCheck{t: t, tree: tree}
	if tree.root != 0 {
		root := pageAt(tree.arena, tree.root)
		require.False(t, !root.leaf() && root.count() == 1, "an inner root with one child")
		c.page(tree.root, root.level(), nil, nil)
	}
	require.Equal(t, tree.count, c.records)
	require.Equal(t, tree.arena.Used(), c.used)
}

// page checks one page, which has a level and fences, and those below it.
func (c *treeCheck) page(at slab.Addr, level int, low, high []byte) {
	p := pageAt(c.tree.arena, at)
	c.used += int64(len(p))
	require.Equal(c.t, level, p.level())
	require.Positive(c.t, p.count())
	require.LessOrEqual(c.t, len(p), pageMax)
	require.GreaterOrEqual(c.t, p.gap(), 0)
	require.LessOrEqual(c.t, p.prefix(), prefixOf(low, high))
	c.entries(p, low, high)
	if p.leaf() {
		c.records += p.count()
		return
	}
	for i := range p.count() {
		childLow, childHigh := low, high
		if i > 0 {
			childLow = p.key(c.tree.arena, i)
		}
		if i+1 < p.count() {
			childHigh = p.key(c.tree.arena, i+1)
		}
		c.page(p.child(c.tree.arena, i), level-1, childLow, childHigh)
	}
}

func (c *treeCheck) entries(p page, low, high []byte) {
	heap := 0
	var last []byte
	for i := range p.count() {
		e := parseEntry(p.entry(i))
		heap += e.size
		switch e.kind {
		case valueApart:
			c.used += int64(slab.Round(e.valSize))
		case bothApart:
			c.used += int64(slab.Round(e.keySize + e.valSize))
		}
		if i == 0 && !p.leaf() {
			continue // a key that does not count
		}
		key := e.key(c.tree.arena)
		must(c.t, headOf(key, p.prefix()) == p.head(i), "the wrong head")
		must(c.t, low == nil || bytes.Compare(low, key) <= 0, "before the low fence")
		must(c.t, high == nil || bytes.Compare(key, high) < 0, "behind the high fence")
		must(c.t, last == nil || bytes.Compare(last, key) < 0, "order")
		last = key
	}
	require.Equal(c.t, p.get(offHeap)-p.get(offGarbage), heap)
}

func TestCheckTreeSeesDamage(t *testing.T) {
	tree := NewTree()
	defer tree.Free()
	tree.Put([]byte("a"), nil)
	tree.Put([]byte("b"), nil)
	p := pageAt(tree.arena, tree.root)
	p.setHead(1, p.head(0))
	require.Panics(t, func() { checkTree(panicker{}, tree) })
}

// panicker lets a test see a check fail.
type panicker struct{}

func (panicker) Errorf(string, ...any) {}
func (panicker) FailNow()              { panic("failed") }
