package paging

import (
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// depths remembers how deep trees are. All leaves of a tree are equally deep, but no branch page
// says how deep: the only way to find out is to read a leaf. Whoever wants to know which leaf a
// lookup reads, and does not want to touch the leaf, needs the depth.
//
// A tree is known by its root page and the transaction, whose pages never change. The leaf that
// tells is the one to which the present lookup leads, which bbolt reads anyway. Rejected: the first
// leaf of each tree, again and again. When the disk cannot read that leaf any more, every lookup
// would fail.
type depths [64]atomic.Pointer[depth]

type depth struct {
	root     uint64
	tx       int
	branches int // above each leaf
}

// of returns how many branch pages are above each leaf of a bucket; 0 for a damaged one.
func (d *depths) of(b *bolt.Bucket, f file, name []byte) int {
	root, tx := uint64(b.RootPage()), b.Tx().ID()
	slot := &d[root%uint64(len(d))]
	if known := slot.Load(); known != nil && known.root == root && known.tx == tx {
		return known.branches
	}
	branches := f.branchesAbove(root, name)
	slot.Store(&depth{root, tx, branches})
	return branches
}

// branchesAbove returns how many branch pages are above the leaf of a name, which it reads.
func (f file) branchesAbove(page uint64, name []byte) int {
	for n := range maxDepth {
		b, ok := f.branch(page)
		if !ok {
			return n
		}
		page = b.child(b.find(name))
	}
	return 0
}
