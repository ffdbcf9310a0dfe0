// Package snapshot keeps databases in files: all records of a database at an instant, with the time
// stamp of that instant, in the format of the original server (drawn in format.go).
//
// Writer and Reader are the codec. Options.Write replaces a snapshot by a newer one; after a crash
// one of the two is there, whole. List finds the snapshots in a directory. The package knows
// databases only as a Source.
//
// Beside the server's format (.ktss) there is the format of the command line tools (dump and load),
// which NewDumpWriter writes. A Reader tells the two apart by their first bytes.
package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"gotycoon/ulog"
)

// The layout of a snapshot. All numbers are big-endian.
//
//	offset  0       6        10      18      26     34
//	        ┌───────┬────────┬───────┬───────┬──────┬──────────────────────────────────────────┐
//	        │ magic │ check  │ stamp │ count │ size │ records, or blocks of compressed records │
//	        └───────┴────────┴───────┴───────┴──────┴──────────────────────────────────────────┘
//	record  cc, varnum key size, varnum value size, key, value in stored form
//	block   4 bytes size, that many bytes that decompress to whole records; closed at 1 MiB
//
// The check value names the compressor. A dump of the command line tools is
//
//	┌────────────┬────────────────────────────────────────────────────────────────────────┬────┐
//	│ "KCSS\n\0" │ records: 00, varnum key size, varnum value size, key, value            │ ff │
//	└────────────┴────────────────────────────────────────────────────────────────────────┴────┘
const (
	magic      = "KTSS\n\x00"
	dumpMagic  = "KCSS\n\x00"
	headerSize = 34

	recordMark     = 0xcc
	dumpRecordMark = 0x00
	dumpEndMark    = 0xff

	blockLimit = 1 << 20 // raw size at which a block is closed
)

// Header is the header of a snapshot.
type Header struct {
	Compressor Compressor
	Stamp      ulog.Stamp // of the instant
	Count      int64      // of records; the original's may be wrong, and is -1 for text databases
	Size       int64      // size of the database in bytes, for information
}

// appendHeader appends the 34 bytes of a header.
func appendHeader(dst []byte, h Header) []byte {
	dst = append(dst, magic...)
	dst = binary.BigEndian.AppendUint32(dst, h.Compressor.check())
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.Stamp))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.Count))
	return binary.BigEndian.AppendUint64(dst, uint64(h.Size))
}

// parseHeader decodes the 34 bytes of a header. With an unknown compressor it returns ErrCompressor
// and the other fields.
func parseHeader(b []byte) (Header, error) {
	if !bytes.HasPrefix(b, []byte(magic)) {
		return Header{}, ErrNoSnapshot
	}
	h := Header{
		Stamp: ulog.Stamp(binary.BigEndian.Uint64(b[10:])),
		Count: int64(binary.BigEndian.Uint64(b[18:])),
		Size:  int64(binary.BigEndian.Uint64(b[26:])),
	}
	check := binary.BigEndian.Uint32(b[6:])
	var known bool
	if h.Compressor, known = compressorOf(check); !known {
		return h, fmt.Errorf("%w (check value %08x)", ErrCompressor, check)
	}
	return h, nil
}

// appendVarnum appends n in groups of 7 bits, the most significant first, each but the last with
// its high bit set.
func appendVarnum(dst []byte, n int) []byte {
	if n < 0x80 {
		return append(dst, byte(n))
	}
	var groups [10]byte
	at := len(groups) - 1
	groups[at] = byte(n & 0x7f)
	for n >>= 7; n > 0; n >>= 7 {
		at--
		groups[at] = 0x80 | byte(n&0x7f)
	}
	return append(dst, groups[at:]...)
}

// maxVarnum is the length of the longest varnum. Sizes of records are shorter.
const maxVarnum = 10

// varnum decodes a number at the beginning of b. size 0 means that b ends within the number, size
// -1 that the bytes are no number.
func varnum(b []byte) (n uint64, size int) {
	for i, c := range b {
		if i == maxVarnum {
			return 0, -1
		}
		n = n<<7 | uint64(c&0x7f)
		if c < 0x80 {
			return n, i + 1
		}
	}
	if len(b) >= maxVarnum {
		return 0, -1
	}
	return 0, 0
}
