package run

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// A Filter says of most keys that a run does not have them, without a look at the run. It is a
// Bloom filter of lines of 64 bytes: a key sets seven bits of one line, so a question costs one
// access to memory. With sixteen bits for each key about one answer of a thousand is wrong: Filter
// says that a key may be there although it is not. It never says the opposite of a key that is
// there. Fewer bits would do for one run, but a lookup asks the filters of up to fifty.
type Filter []byte

const (
	filterLine = 64 // bytes
	filterBits = 16 // for each key
	filterSets = 7  // bits that a key sets
)

// Hash returns what Filter asks for instead of a key.
func Hash(key []byte) uint64 { return xxhash.Sum64(key) }

// newFilter returns an empty filter for a number of keys.
func newFilter(keys int64) Filter {
	lines := (keys*filterBits + filterLine*8 - 1) / (filterLine * 8)
	return make(Filter, max(1, lines)*filterLine)
}

// line returns the line of a key, and bits for the places in the line.
func (f Filter) line(hash uint64) (line []byte, bits uint64) {
	lines := uint64(len(f) / filterLine)
	at := (hash >> 32 * lines) >> 32 * filterLine
	const golden = 0x9E3779B97F4A7C15
	return f[at : at+filterLine], hash * golden
}

func (f Filter) add(hash uint64) {
	line, bits := f.line(hash)
	for range filterSets {
		line[bits>>55&63] |= 1 << (bits >> 61)
		bits = bits<<9 | bits>>55
	}
}

// MayHave reports whether the run may have a key with the hash.
func (f Filter) MayHave(hash uint64) bool {
	line, bits := f.line(hash)
	for range filterSets {
		if line[bits>>55&63]&(1<<(bits>>61)) == 0 {
			return false
		}
		bits = bits<<9 | bits>>55
	}
	return true
}

// decodeFilter returns a filter as stored; ok is false when it cannot be one.
func decodeFilter(b []byte) (f Filter, ok bool) {
	if len(b) < filterLine+8 || (len(b)-8)%filterLine != 0 {
		return nil, false
	}
	f = append(Filter(nil), b[:len(b)-8]...)
	return f, xxhash.Sum64(f) == binary.LittleEndian.Uint64(b[len(f):])
}

// encode returns the filter as stored: its bits, and a checksum.
func (f Filter) encode() []byte {
	return binary.LittleEndian.AppendUint64(append([]byte(nil), f...), xxhash.Sum64(f))
}
