package run

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"

	"gotycoon/internal/pieces"
)

// blockRoom returns the largest size of a block together with its last key: two of them fill a page
// of bbolt. bbolt puts at least two values into a page, and a lookup that reads a single page takes
// a single read of the disk.
func blockRoom(pageSize int) int {
	const pageHeader, elementHeader = 16, 16
	return (pageSize-pageHeader)/2 - elementHeader - 1 // 1: BlockKey
}

const (
	offsetSize  = 4
	sumSize     = 8
	trailerSize = offsetSize + sumSize // number of entries, checksum
)

// ErrDamaged says that a block is not as it was written.
var ErrDamaged = errors.New("a block of the database file is damaged; \"kttimedmgr repair\" saves the records")

// blockBuilder makes one block after another.
type blockBuilder struct {
	block   []byte // entries so far
	offsets []uint32
}

// add appends an entry. An empty flagged value says that the value stands outside the block.
func (b *blockBuilder) add(key, flagged []byte) {
	b.offsets = append(b.offsets, uint32(len(b.block)))
	b.block = binary.AppendUvarint(b.block, uint64(len(key)))
	b.block = binary.AppendUvarint(b.block, uint64(len(flagged)))
	b.block = append(append(b.block, key...), flagged...)
}

// sizeWith returns the bytes of the block if it ended after another entry.
func (b *blockBuilder) sizeWith(key, flagged []byte) int {
	return len(b.block) + len(key) + len(flagged) + 2*binary.MaxVarintLen32 + offsetSize*(len(b.offsets)+1) + trailerSize
}

// finish appends the finished block to dst and begins another one.
func (b *blockBuilder) finish(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, b.block...)
	for _, o := range b.offsets {
		dst = binary.LittleEndian.AppendUint32(dst, o)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b.offsets)))
	dst = binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[at:]))
	b.block, b.offsets = b.block[:0], b.offsets[:0]
	return dst
}

// A block is a finished block.
type block struct {
	entries []byte
	offsets []byte
}

// openBlock finds the parts of a block. With check it compares the checksum, which takes a few
// microseconds; without, only what would lead outside the block is noticed.
func openBlock(raw []byte, check bool) (block, error) {
	if len(raw) < trailerSize {
		return block{}, ErrDamaged
	}
	body := raw[:len(raw)-8]
	if check && xxhash.Sum64(body) != binary.LittleEndian.Uint64(raw[len(body):]) {
		return block{}, ErrDamaged
	}
	n := int64(binary.LittleEndian.Uint32(body[len(body)-offsetSize:]))
	body = body[:len(body)-offsetSize]
	ends := int64(len(body)) - n*offsetSize
	if n == 0 || ends < 0 {
		return block{}, ErrDamaged
	}
	return block{body[:ends], body[ends:]}, nil
}

func (b block) len() int { return len(b.offsets) / offsetSize }

// raw returns the bytes of entry i, which another block can take over as they are, and where in
// them the key is.
func (b block) raw(i int) (raw []byte, key, n int, err error) {
	from, to := int64(binary.LittleEndian.Uint32(b.offsets[i*offsetSize:])), int64(len(b.entries))
	if i+1 < b.len() {
		to = int64(binary.LittleEndian.Uint32(b.offsets[(i+1)*offsetSize:]))
	}
	if from >= to || to > int64(len(b.entries)) {
		return nil, 0, 0, ErrDamaged
	}
	raw = b.entries[from:to]
	k, wk := binary.Uvarint(raw)
	if wk <= 0 || k > uint64(len(raw)) {
		return nil, 0, 0, ErrDamaged
	}
	v, wv := binary.Uvarint(raw[wk:])
	if wv <= 0 || uint64(wk+wv)+k+v != uint64(len(raw)) || v > uint64(len(raw)) {
		return nil, 0, 0, ErrDamaged
	}
	return raw, wk + wv, int(k), nil
}

// entry returns entry i; flagged is empty when it stands outside the block.
func (b block) entry(i int) (key, flagged []byte, err error) {
	at := int64(binary.LittleEndian.Uint32(b.offsets[i*offsetSize:]))
	if at > int64(len(b.entries)) {
		return nil, nil, ErrDamaged
	}
	rest := b.entries[at:]
	k, n := binary.Uvarint(rest)
	if n <= 0 {
		return nil, nil, ErrDamaged
	}
	rest = rest[n:]
	v, n := binary.Uvarint(rest)
	if n <= 0 {
		return nil, nil, ErrDamaged
	}
	rest = rest[n:]
	size := uint64(len(rest))
	if k > size || v > size-k {
		return nil, nil, ErrDamaged
	}
	return rest[:k:k], rest[k : k+v : k+v], nil
}

// search returns the first entry whose key is not less than key, and whether it is key itself.
func (b block) search(key []byte) (i int, exact bool, err error) {
	low, high := 0, b.len()
	for low < high {
		mid := int(uint(low+high) / 2)
		k, _, err := b.entry(mid)
		if err != nil {
			return 0, false, err
		}
		switch c := bytes.Compare(k, key); {
		case c == 0:
			return mid, true, nil
		case c < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false, nil
}

// closeLarge returns a copy of a flagged value that is too large for a block, with the checksum
// behind it.
func closeLarge(flagged []byte) []byte {
	raw := pieces.Append(make([]byte, 0, len(flagged)+sumSize), flagged)
	return binary.LittleEndian.AppendUint64(raw, largeSum(flagged))
}

// openLarge is the reverse of closeLarge; it does not copy.
func openLarge(raw []byte, check bool) (flagged []byte, err error) {
	if len(raw) <= sumSize {
		return nil, ErrDamaged
	}
	flagged = raw[:len(raw)-sumSize]
	if check && largeSum(flagged) != binary.LittleEndian.Uint64(raw[len(flagged):]) {
		return nil, ErrDamaged
	}
	return flagged, nil
}

// largeSum takes the checksum piece by piece, so that a value of gigabytes holds up nobody.
func largeSum(flagged []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	_ = pieces.Each(flagged, func(piece []byte) error {
		_, err := d.Write(piece)
		return err
	})
	return d.Sum64()
}
