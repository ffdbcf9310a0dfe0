package filestore

import "encoding/binary"

// keyList is a list of keys. It grows by pieces, so that no key is copied when it grows: an overlay
// lists a million of them while clients wait for each update.
type keyList struct {
	pieces [][]byte // of keys, each with a varint length before it
	size   int      // bytes in the pieces
}

// The pieces of a list double from the one size to the other.
const (
	leastKeys = 1 << 10
	mostKeys  = 64 << 10
)

// add appends a copy of a key.
func (l *keyList) add(key []byte) {
	need := binary.MaxVarintLen32 + len(key)
	last := len(l.pieces) - 1
	if last < 0 || cap(l.pieces[last])-len(l.pieces[last]) < need {
		l.pieces = append(l.pieces, make([]byte, 0, max(need, min(max(l.size, leastKeys), mostKeys))))
		last++
	}
	before := len(l.pieces[last])
	l.pieces[last] = append(binary.AppendUvarint(l.pieces[last], uint64(len(key))), key...)
	l.size += len(l.pieces[last]) - before
}

// cut cuts the list behind the first pieces that have n bytes together.
func (l *keyList) cut(n int) (first, rest keyList) {
	at := 0
	for at < len(l.pieces) && first.size < n {
		first.size += len(l.pieces[at])
		at++
	}
	first.pieces = l.pieces[:at:at]
	// In an array of its own: else the first pieces would stay in memory as long as the rest.
	rest.pieces, rest.size = append([][]byte(nil), l.pieces[at:]...), l.size-first.size
	return first, rest
}

// join returns both lists as one.
func (l *keyList) join(m keyList) keyList {
	return keyList{append(l.pieces[:len(l.pieces):len(l.pieces)], m.pieces...), l.size + m.size}
}

// each calls f for each key, up to the first error.
func (l *keyList) each(f func(key []byte) error) error {
	for _, piece := range l.pieces {
		for len(piece) > 0 {
			n, w := binary.Uvarint(piece)
			end := w + int(n)
			if err := f(piece[w:end]); err != nil {
				return err
			}
			piece = piece[end:]
		}
	}
	return nil
}

// len returns the number of keys.
func (l *keyList) len() (n int) {
	_ = l.each(func([]byte) error { // never fails
		n++
		return nil
	})
	return n
}
