package rebuild

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// sort brings the updates in the order of their keys, and those of one key in the order in which they were made.
func (c *chunk) sort() {
	for i := range c.refs {
		r := &c.refs[i]
		r.prefix = prefixOf(c.key(*r)[min(c.skip, int(r.ksize)):])
	}
	slices.SortFunc(c.refs, func(a, b ref) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		if n := bytes.Compare(c.key(a), c.key(b)); n != 0 {
			return n
		}
		return cmp.Compare(a.off, b.off)
	})
}

// prefixOf returns a number that orders keys as their first bytes do.
func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

func (c *chunk) key(r ref) []byte { return c.data[r.off : r.off+r.ksize] }

func (c *chunk) value(r ref) []byte {
	if r.vsize == removed {
		return nil
	}
	at := r.off + r.ksize
	return c.data[at : at+r.vsize]
}

// superseded tells whether the update after i is one of the same key.
func (c *chunk) superseded(i int) bool {
	return i+1 < len(c.refs) && c.refs[i].prefix == c.refs[i+1].prefix && bytes.Equal(c.key(c.refs[i]), c.key(c.refs[i+1]))
}

// room makes place for n more bytes of data. It doubles, but not beyond the limit.
func (c *chunk) room(n int, limit int64) {
	need := len(c.data) + n
	if need <= cap(c.data) {
		return
	}
	size := max(2*cap(c.data), 64<<10)
	size = max(min(size, int(limit)), need)
	c.data = append(make([]byte, 0, size), c.data...)
}
