package rebuild

import "encoding/binary"

// node is a page that is being filled.
type node struct {
	flags uint16
	items []item
	data  []byte // keys and values, one after the other
}

// item is an element of a node; its data is where those before it end.
type item struct {
	flags        uint32 // of a leaf's element
	child        uint64 // page, of a branch's element
	ksize, vsize uint32
}

// size returns the bytes that the node takes.
func (n *node) size() int { return headSize + elementSize*len(n.items) + len(n.data) }

// fits tells whether one more element leaves the node in a page.
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
