package rebuild

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"gotycoon/db/filestore"
)

// ErrOrder is returned for a key that is not greater than the one before it.
var ErrOrder = errors.New("keys are not in growing order")

// A tree writes the pages of a database whose records come in order: leaves as they fill, branches
// behind the pages they lead to, and the buckets at the end. It holds two nodes of each level.
type tree struct {
	out      *output
	pageSize int
	prefix   byte    // in front of every key
	next     uint64  // id of the next page
	levels   []level // the leaves, then the branches above them
	key      []byte  // scratch
	count    int64
	bytes    int64 // of keys and values
	sum      uint64
}

// A level is one level of the tree. A full branch stays in memory until the next branch of its
// level is full, too. So if the last branch ends with a single child, finish can still move that
// child to the full branch before it: bbolt does not expect branches with a single child.
type level struct {
	node *node
	full *node // nil: none
}

func newTree(out *output, pageSize int) *tree {
	t := &tree{out: out, pageSize: pageSize, prefix: filestore.KeyPrefix, next: 2}
	list := out.take(pageSize)
	head{id: t.next, flags: flagFreelist}.write(list)
	t.next++
	t.levels = []level{{node: &node{flags: flagLeaf}}}
	return t
}

// behind returns a tree whose pages come behind those of t, which is finished.
func (t *tree) behind(prefix byte) *tree {
	return &tree{out: t.out, pageSize: t.pageSize, prefix: prefix, next: t.next, levels: []level{{node: &node{flags: flagLeaf}}}}
}

// put adds a record with a greater key than all before.
func (t *tree) put(key, value []byte) error {
	if len(key) > filestore.MaxKeySize {
		return fmt.Errorf("a key of %d bytes is longer than the file format can hold, %d", len(key), filestore.MaxKeySize)
	}
	t.key = append(append(t.key[:0], t.prefix), key...)
	leaf := t.levels[0].node
	if !leaf.fits(t.pageSize, len(t.key), len(value)) && len(leaf.items) > 0 {
		if err := t.close(0); err != nil {
			return err
		}
		leaf = t.levels[0].node
	}
	leaf.add(item{}, t.key, value)
	t.count++
	t.bytes += int64(len(key) + len(value))
	t.sum += filestore.RecordSum(key, value)
	return t.out.failure()
}

// close ends the node of a level: a leaf is written, a branch takes the place of the full one.
func (t *tree) close(i int) error {
	l := &t.levels[i]
	if i == 0 {
		id, err := t.write(l.node)
		if err == nil {
			err = t.link(1, l.node.first(), id)
		}
		t.levels[0].node.reset()
		return err
	}
	spare := l.full
	if spare != nil {
		if err := t.writeFull(i); err != nil {
			return err
		}
		l = &t.levels[i] // link may have moved it
		spare.reset()
	} else {
		spare = &node{flags: flagBranch}
	}
	l.full, l.node = l.node, spare
	return nil
}

func (t *tree) writeFull(i int) error {
	full := t.levels[i].full
	t.levels[i].full = nil
	id, err := t.write(full)
	if err != nil {
		return err
	}
	return t.link(i+1, full.first(), id)
}

// link adds a child to the branch of a level.
func (t *tree) link(i int, key []byte, id uint64) error {
	if i == len(t.levels) {
		t.levels = append(t.levels, level{node: &node{flags: flagBranch}})
	}
	branch := t.levels[i].node
	if !branch.fits(t.pageSize, len(key), 0) && len(branch.items) > 1 {
		if err := t.close(i); err != nil {
			return err
		}
		branch = t.levels[i].node
	}
	branch.add(item{child: id}, key, nil)
	return nil
}

// write gives a node the next pages.
func (t *tree) write(n *node) (uint64, error) {
	count := (n.size() + t.pageSize - 1) / t.pageSize
	id := t.next
	t.next += uint64(count)
	n.write(t.out.take(count*t.pageSize), id, t.pageSize)
	return id, t.out.failure()
}

// finish writes the rest of all levels and returns the root of the records.
func (t *tree) finish() (uint64, error) {
	for i := 0; ; i++ {
		t.levels[i].adoptOnlyChild()
		if t.levels[i].full != nil {
			if err := t.writeFull(i); err != nil {
				return 0, err
			}
		}
		id, err := t.write(t.levels[i].node)
		if err != nil || i == len(t.levels)-1 {
			return id, err
		}
		if err := t.link(i+1, t.levels[i].node.first(), id); err != nil {
			return 0, err
		}
	}
}

func (l *level) adoptOnlyChild() {
	if l.full != nil && len(l.node.items) == 1 {
		l.full.items, l.full.data = append(l.full.items, l.node.items...), append(l.full.data, l.node.data...)
		l.node, l.full = l.full, nil
	}
}

// buckets writes the page that names the buckets and returns its id; versions is 0 for a file
// without versions. The description stands inside this page, so that a salvage of a file with
// broken meta pages can tell which of several such pages is the newest.
func (t *tree) buckets(root, versions uint64, description []byte) (uint64, error) {
	inline := &node{flags: flagLeaf}
	inline.add(item{}, []byte(filestore.MetaKey), description)
	text := make([]byte, bucketSize+inline.size())
	inline.write(text[bucketSize:], 0, len(text)) // one page, whatever its size
	top := &node{flags: flagLeaf}
	top.add(item{flags: elementBucket}, []byte(filestore.DataBucket), bucketValue(root))
	top.add(item{flags: elementBucket}, []byte(filestore.MetaBucket), text)
	if versions != 0 {
		top.add(item{flags: elementBucket}, []byte(filestore.VersionBucket), bucketValue(versions))
	}
	return t.write(top)
}

func bucketValue(root uint64) []byte {
	b := make([]byte, bucketSize)
	binary.NativeEndian.PutUint64(b, root)
	return b
}

// metaPages returns pages 0 and 1.
func (t *tree) metaPages(root uint64) []byte {
	b := make([]byte, 2*t.pageSize)
	for i := range uint64(2) {
		at := b[int(i)*t.pageSize:]
		head{id: i, flags: flagMeta}.write(at)
		meta{uint32(t.pageSize), root, 2, t.next, i}.write(at[headSize:])
	}
	return b
}

// less reports whether a stored key is before another.
func less(a, b []byte) bool { return bytes.Compare(a, b) < 0 }

// A node is a page that is being filled.
type node struct {
	flags uint16
	items []item
	data  []byte // keys and values, one after the other
}

// An item is an element of a node; its data begins where the data of the item before it ends.
type item struct {
	flags        uint32 // of a leaf's element
	child        uint64 // page, of a branch's element
	ksize, vsize uint32
}

// size returns the bytes that the node takes.
func (n *node) size() int { return headSize + elementSize*len(n.items) + len(n.data) }

// fits reports whether one more element leaves the node in a page.
func (n *node) fits(pageSize, ksize, vsize int) bool {
	return n.size()+elementSize+ksize+vsize <= pageSize
}

func (n *node) add(it item, key, value []byte) {
	it.ksize, it.vsize = uint32(len(key)), uint32(len(value))
	n.items = append(n.items, it)
	n.data = append(append(n.data, key...), value...)
}

// first returns the smallest key.
func (n *node) first() []byte {
	if len(n.items) == 0 {
		return nil
	}
	return n.data[:n.items[0].ksize]
}

// write fills a page, or several, with the node.
func (n *node) write(dst []byte, id uint64, pageSize int) {
	head{id, n.flags, uint16(len(n.items)), uint32(len(dst)/pageSize - 1)}.write(dst)
	at, data := headSize, headSize+elementSize*len(n.items)
	for _, it := range n.items {
		e, pos := dst[at:at+elementSize], uint32(data-at)
		if n.flags == flagBranch {
			binary.NativeEndian.PutUint32(e, pos)
			binary.NativeEndian.PutUint32(e[4:], it.ksize)
			binary.NativeEndian.PutUint64(e[8:], it.child)
		} else {
			binary.NativeEndian.PutUint32(e, it.flags)
			binary.NativeEndian.PutUint32(e[4:], pos)
			binary.NativeEndian.PutUint32(e[8:], it.ksize)
			binary.NativeEndian.PutUint32(e[12:], it.vsize)
		}
		at += elementSize
		data += int(it.ksize) + int(it.vsize)
	}
	copy(dst[at:], n.data)
}

func (n *node) reset() { n.items, n.data = n.items[:0], n.data[:0] }
