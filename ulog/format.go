package ulog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// RecordHead is the size of what a record has in front of its message: mark, stamp, message size.
const RecordHead = 13

// Marks and sizes of the segment format. The original's are byte for byte its own.
const (
	magic     = 0xA0
	startMark = 0xA1
	endMark   = 0xA2

	headerSize = 17
	frameSize  = RecordHead + 1 // what a record needs beside its message

	maxMessage = math.MaxUint32 // bytes of a message

	commitDBID    = math.MaxUint16
	commitOp      = 0xA0
	commitVersion = 1
	commitMessage = prefixSize + 1 + 4 + 4
	commitSize    = frameSize + commitMessage
	commitCovered = RecordHead + prefixSize + 1 // bytes of a commit record in front of its checksum
)

var (
	errHeader        = errors.New("not a segment header")
	errCommitVersion = errors.New("commit record of an unknown version")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A header is the beginning of a segment:
//
//	offset  0      1                    9                    17
//	        ┌──────┬────────────────────┬────────────────────┐
//	        │ a0   │ size, u64          │ last stamp, u64    │
//	        └──────┴────────────────────┴────────────────────┘
//
// All numbers of the format are big-endian.
type header struct {
	size int64 // of the segment when the header was written, these 17 bytes included
	last Stamp // largest stamp then; in the newest segment maybe a greater one, see promise.go
}

func encodeHeader(h header) []byte {
	dst := append(make([]byte, 0, headerSize), magic)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.size))
	return binary.BigEndian.AppendUint64(dst, uint64(h.last))
}

func parseHeader(b []byte) (header, error) {
	if len(b) < headerSize || b[0] != magic {
		return header{}, errHeader
	}
	size, last := binary.BigEndian.Uint64(b[1:]), Stamp(binary.BigEndian.Uint64(b[9:]))
	if size < headerSize || size > math.MaxInt64 {
		return header{}, fmt.Errorf("%w: size %d", errHeader, size)
	}
	if last >= maxStamp {
		return header{}, fmt.Errorf("%w: time stamp %d", errHeader, last)
	}
	return header{int64(size), last}, nil
}

// appendRecord appends a record:
//
//	offset  0      1            9          13              13+n
//	        ┌──────┬────────────┬──────────┬───────────────┬──────┐
//	        │ a1   │ stamp, u64 │ n, u32   │ message       │ a2   │
//	        └──────┴────────────┴──────────┴───────────────┴──────┘
func appendRecord(dst []byte, s Stamp, u *Update) []byte {
	dst = appendFrameHead(dst, s, messageSize(u))
	dst = AppendMessage(dst, u)
	return append(dst, endMark)
}

func appendFrameHead(dst []byte, s Stamp, n int) []byte {
	dst = append(dst, startMark)
	dst = binary.BigEndian.AppendUint64(dst, uint64(s))
	return binary.BigEndian.AppendUint32(dst, uint32(n))
}

// commit is what the commit record of a group says.
type commit struct {
	crc   uint32
	count uint32
}

// appendCommit appends the commit record of the group that fills dst from offset from on:
//
//	offset  0    1           9        13    15    17   18       19       23         27
//	        ┌────┬───────────┬────────┬─────┬─────┬────┬────────┬────────┬──────────┬────┐
//	        │ a1 │ stamp,u64 │ 14,u32 │ 00  │ ff  │ a0 │ version│ crc,u32│ count,u32│ a2 │
//	        │    │           │        │ 00  │ ff  │    │        │        │          │    │
//	        └────┴───────────┴────────┴─────┴─────┴────┴────────┴────────┴──────────┴────┘
//
// The stamp is that of the group's last record. The checksum, CRC-32C, covers the records of the
// group, then bytes 0 to 18 of the commit record, then the count. A count of 0 says nothing about
// records in front of it. Such a commit record marks the beginning of a segment, the end of records
// that the original wrote, or a stamp taken by Tick. SID 0 and database 65535 make the original's
// slaves and tools pass the record over.
func appendCommit(dst []byte, from int, last Stamp, count uint32) []byte {
	return appendCommitOf(dst, crc32.Update(0, castagnoli, dst[from:]), last, count)
}

// appendCommitOf is appendCommit for a group whose records have the checksum crc.
func appendCommitOf(dst []byte, crc uint32, last Stamp, count uint32) []byte {
	at := len(dst)
	dst = appendFrameHead(dst, last, commitMessage)
	dst = append(dst, 0, 0, 0xFF, 0xFF, commitOp, commitVersion, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, count)
	crc = commitCRC(crc, dst[at:])
	binary.BigEndian.PutUint32(dst[at+commitCovered:], crc)
	return append(dst, endMark)
}

// commitCRC adds a commit record to the checksum of the records in front of it.
func commitCRC(crc uint32, raw []byte) uint32 {
	crc = crc32.Update(crc, castagnoli, raw[:commitCovered])
	return crc32.Update(crc, castagnoli, raw[commitCovered+4:commitSize-1])
}

// isCommit reports whether a message belongs to a commit record, of whatever version.
func isCommit(msg []byte) bool {
	return len(msg) > prefixSize && msg[2] == 0xFF && msg[3] == 0xFF && msg[4] == commitOp
}

// parseCommit decodes the message of a commit record.
func parseCommit(msg []byte) (commit, error) {
	if msg[prefixSize] != commitVersion || len(msg) != commitMessage {
		return commit{}, fmt.Errorf("%w: %d", errCommitVersion, msg[prefixSize])
	}
	b := msg[prefixSize+1:]
	return commit{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}, nil
}

// joinCRC returns the checksum of two runs of bytes, where a is the checksum of the first run, and
// b of the second, which is n bytes long.
//
// A checksum is the remainder of a division of polynomials whose coefficients are bits. Appending n
// bytes multiplies the first run by x to the power of 8n and then adds the second run. The
// inversions at both ends of a checksum cancel each other out.
func joinCRC(a, b uint32, n int) uint32 {
	power := uint32(1) << (31 - 8) // x to the power of 8, then of 16, 32, …
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			a = multiplyCRC(a, power)
		}
		power = multiplyCRC(power, power)
	}
	return a ^ b
}

// multiplyCRC multiplies polynomials modulo the polynomial of CRC-32C. The highest bit is the
// coefficient of 1, the lowest that of x to the power of 31.
func multiplyCRC(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 == 1 {
			product ^= b
		}
		b = b>>1 ^ b&1*crc32.Castagnoli // b times x
	}
	return product
}
