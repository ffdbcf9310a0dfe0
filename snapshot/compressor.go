package snapshot

import (
	"strings"
)

// Compressor is how the records of a snapshot are compressed (-bgsc).
type Compressor int

// The compressors. The original refuses snapshots with Zstd and S2, whose check values it does not
// know.
const (
	Plain Compressor = iota // not at all ("none")
	Zlib                    // "zlib", "gz": raw deflate
	LZO                     // "lzo", "oz"; written without compression, as literals
	LZMA                    // "lzma", "xz"
	Zstd                    // "zstd"
	S2                      // "s2"

	// Builds of the original without a compression library write two bytes and then uncompressed
	// records. This package reads such snapshots and never writes them.
	bareLZMA
	bareLZO
	bareZlib
)

// A header names its compressor by a check value: the low half of the hash of the magic bytes,
// compressed as the original's library compresses them. The values are constants here, because
// another library may compress the magic bytes to other bytes. The original has no Zstd and no S2:
// their values are the hashes of the texts below.
const (
	checkZlib     = 0x87454510
	checkLZO      = 0xd78654f1
	checkLZMA     = 0x7c1679ec
	checkZstd     = 0xa3ea4bec // hash of "KTSS\n\0zstd"
	checkS2       = 0xcc2df1b6 // hash of "KTSS\n\0s2"
	checkBareLZMA = 0x7d4f7907
	checkBareLZO  = 0x89f4e5c4
	checkBareZlib = 0xc945ebc7
)

// String returns the name for -bgsc, or says which compressor a bare one replaces.
func (c Compressor) String() string { return c.row().names[0] }

func (c Compressor) check() uint32 { return c.row().check }

// compressorRow is the name and check value of a compressor.
type compressorRow struct {
	names []string // as -bgsc accepts them
	check uint32
}

func (c Compressor) row() compressorRow {
	switch c {
	case Zlib:
		return compressorRow{[]string{"zlib", "gz"}, checkZlib}
	case LZO:
		return compressorRow{[]string{"lzo", "oz"}, checkLZO}
	case LZMA:
		return compressorRow{[]string{"lzma", "xz"}, checkLZMA}
	case Zstd:
		return compressorRow{[]string{"zstd"}, checkZstd}
	case S2:
		return compressorRow{[]string{"s2"}, checkS2}
	case bareLZMA:
		return compressorRow{[]string{"none (in place of lzma)"}, checkBareLZMA}
	case bareLZO:
		return compressorRow{[]string{"none (in place of lzo)"}, checkBareLZO}
	case bareZlib:
		return compressorRow{[]string{"none (in place of zlib)"}, checkBareZlib}
	}
	return compressorRow{[]string{"none"}, 0}
}

// ParseCompressor returns the compressor with a name, in upper or lower case.
func ParseCompressor(name string) (c Compressor, known bool) {
	for c := Plain; c <= S2; c++ {
		for _, n := range c.row().names {
			if strings.EqualFold(n, name) {
				return c, true
			}
		}
	}
	return Plain, false
}

// compressorOf returns the compressor with a check value.
func compressorOf(check uint32) (c Compressor, known bool) {
	for c := Plain; c <= bareZlib; c++ {
		if c.check() == check {
			return c, true
		}
	}
	return Plain, false
}
