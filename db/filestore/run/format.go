package run

import "encoding/binary"

// Bucket is the bucket of a file that holds its runs.
const Bucket = "runs"

// Kinds of keys in the bucket of a run: the first byte of the key.
const (
	InfoKey   = 0x00
	FilterKey = 0x01
	BlockKey  = 0x03
	LargeKey  = 0x05
)

// Info says what a run holds. A merge makes less of it, see DropUpTo.
type Info struct {
	Entries   int64 // live ones and tombstones
	Bytes     int64 // keys and flagged values
	Live      int64 // entries that are records
	LiveBytes int64 // their keys and values

	// About how many records, and bytes of records, the file has from this run on: an estimate.
	About, AboutBytes int64
}

// fields returns the figures in the order in which they are stored.
func (i *Info) fields() []*int64 {
	return []*int64{&i.Entries, &i.Bytes, &i.Live, &i.LiveBytes, &i.About, &i.AboutBytes}
}

func (i *Info) encode() (b []byte) {
	for _, n := range i.fields() {
		b = binary.BigEndian.AppendUint64(b, uint64(*n))
	}
	return b
}

// The rest is for programs that read the pages of a file themselves (db/rebuild). Nothing in a file
// is believed unchecked.

// A Block is a block with the right checksum.
type Block struct{ block }

// OpenBlock returns a block of a run; the error is ErrDamaged.
func OpenBlock(raw []byte) (Block, error) {
	b, err := openBlock(raw, true)
	return Block{b}, err
}

// Len returns the number of entries.
func (b Block) Len() int { return b.len() }

// Entry returns entry i. An empty flagged value stands outside the block, at LargeKey ‖ key.
func (b Block) Entry(i int) (key, flagged []byte, err error) { return b.entry(i) }

// OpenLarge returns a flagged value that stands outside its block; the error is ErrDamaged.
func OpenLarge(raw []byte) (flagged []byte, err error) { return openLarge(raw, true) }

// DecodeInfo returns the description of a run; ok is false for bytes that are none.
func DecodeInfo(b []byte) (info Info, ok bool) {
	fields := info.fields()
	if len(b) != 8*len(fields) {
		return info, false
	}
	for i, n := range fields {
		*n = int64(binary.BigEndian.Uint64(b[8*i:]))
	}
	return info, true
}

// DecodeFilter returns the filter of a run; ok is false for bytes that are none.
func DecodeFilter(b []byte) (f Filter, ok bool) { return decodeFilter(b) }
