package run

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// pending is records, in order, that will be cut into blocks.
type pending struct {
	room    int // of a block and its name
	entries []byte
	at      []place
	fits    int // how many of the first entries fit into a block, at least one
}

// A place says where an entry and its key are.
type place struct{ from, key, to int }

func (p *pending) reset(room int) {
	p.room, p.entries, p.at, p.fits = room, p.entries[:0], p.at[:0], 0
}

func (p *pending) len() int { return len(p.at) }

// size returns about the bytes of a block of all entries.
func (p *pending) size() int { return len(p.entries) + offsetSize*len(p.at) + trailerSize }

// underfull reports whether a block of all entries would be so small that it is better joined with
// the next one.
func (p *pending) underfull() bool { return len(p.at) > 0 && p.size() < p.room/4 }

// add appends an entry.
func (p *pending) add(key, value []byte) {
	from := len(p.entries)
	p.entries = binary.AppendUvarint(p.entries, uint64(len(key)))
	p.entries = binary.AppendUvarint(p.entries, uint64(len(value)))
	at := len(p.entries)
	p.entries = append(append(p.entries, key...), value...)
	p.note(place{from, at, at + len(key)})
}

// addRaw appends an entry of another block, whose key is at raw[key:key+n].
func (p *pending) addRaw(raw []byte, key, n int) {
	from := len(p.entries)
	p.entries = append(p.entries, raw...)
	p.note(place{from, from + key, from + key + n})
}

// note takes note of the entry that ends where all entries end now.
func (p *pending) note(at place) {
	p.at = append(p.at, at)
	n := len(p.at)
	if p.fits == n-1 && (n == 1 || len(p.entries)+offsetSize*n+trailerSize+at.to-at.key <= p.room) {
		p.fits = n
	}
}

// end returns where the first n entries end.
func (p *pending) end(n int) int {
	if n == len(p.at) {
		return len(p.entries)
	}
	return p.at[n].from
}

// half returns how many of the first entries have about half of all bytes.
func (p *pending) half() int {
	n := 1
	for n < len(p.at)-1 && 2*p.end(n) < len(p.entries) {
		n++
	}
	return n
}

// name returns the key of the last of the first n entries.
func (p *pending) name(n int) []byte {
	last := p.at[n-1]
	return p.entries[last.key:last.to]
}

// blockSize returns the bytes of a block of the first n entries.
func (p *pending) blockSize(n int) int { return p.end(n) + offsetSize*n + trailerSize }

// cut appends a block of the first n entries to dst, and takes them out.
func (p *pending) cut(n int, dst []byte) []byte {
	end := p.end(n)
	begin := len(dst)
	dst = append(dst, p.entries[:end]...)
	for _, at := range p.at[:n] {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(at.from))
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	dst = binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[begin:]))

	p.entries = append(p.entries[:0], p.entries[end:]...)
	p.at = append(p.at[:0], p.at[n:]...)
	for i, at := range p.at {
		p.at[i] = place{at.from - end, at.key - end, at.to - end}
	}
	p.count()
	return dst
}

// count finds out anew how many entries fit into a block.
func (p *pending) count() {
	p.fits = min(1, len(p.at))
	for n := 2; n <= len(p.at); n++ {
		last := p.at[n-1]
		if p.end(n)+offsetSize*n+trailerSize+last.to-last.key > p.room {
			return
		}
		p.fits = n
	}
}

// chunks is memory that is given out in pieces and taken back as a whole.
type chunks struct {
	all  [][]byte
	used int // of all, the last one in part
	size int // bytes given out
}

const chunkSize = 1 << 20

func (c *chunks) reset() {
	c.used, c.size = 0, 0
}

// take returns n bytes of capacity.
func (c *chunks) take(n int) []byte {
	c.size += n
	if c.used > 0 {
		last := &c.all[c.used-1]
		if len(*last)+n <= cap(*last) {
			from := len(*last)
			*last = (*last)[:from+n]
			return (*last)[from : from : from+n]
		}
	}
	if c.used == len(c.all) || cap(c.all[c.used]) < n {
		c.all = append(c.all[:c.used], make([]byte, 0, max(n, chunkSize)))
	}
	room := &c.all[c.used]
	*room = (*room)[:n]
	c.used++
	return (*room)[0:0:n]
}
