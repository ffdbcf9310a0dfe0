package ulog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/ulog/update"
)

// The types of package update under the names that the users of a log know.
type (
	Stamp  = update.Stamp  // position in the log, and time of the change there
	Update = update.Update // one change to one database
	Op     = update.Op     // what an update does
	Origin = update.Origin // where an update was first made
)

// The operations that are logged.
const (
	OpSet    = update.OpSet
	OpRemove = update.OpRemove
	OpClear  = update.OpClear
)

const (
	perMilli = update.PerMilli
	maxStamp = Stamp(1) << 63 // the year 2262; anything from here on is damage
)

// StampAt returns the smallest stamp of a moment.
func StampAt(t time.Time) Stamp { return update.StampAt(t) }

// An Entry is a record of the log.
type Entry struct {
	Stamp   Stamp
	Message []byte // see ParseMessage; valid until the next call of Next
	Origin  Origin // where the update was made, unless here
}

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
	lastVersion   = 15 // that a commit record may ever have
	commitMessage = prefixSize + 1 + 4 + 4
	commitSize    = frameSize + commitMessage
	commitCovered = RecordHead + prefixSize + 1 // bytes of a commit record in front of its checksum
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrMalformed means that the sizes in a message do not add up to its length.
var ErrMalformed = errors.New("invalid message format")

var (
	errTooLarge   = errors.New("update is too large for the log")  // for the 32-bit size of a record
	errReservedDB = errors.New("database index 65535 is reserved") // it marks commit records
)

var (
	errHeader        = errors.New("not a segment header")
	errCommitVersion = errors.New("commit record of an unknown version")
	// errNewer is the error of a version that a later program may have; what is above lastVersion
	// is rather a byte of a write that was torn.
	errNewer = fmt.Errorf("%w: a newer version of the server has written this log, and this one cannot read it; start that version", errCommitVersion)
)

var errStamp = errors.New("time stamp lies centuries ahead")

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

// prefixSize is the size of what every message begins with: SID, DBID, Op.
const prefixSize = 5

// AppendMessage appends the message of an update, with numbers in big-endian order:
//
//	offset  0      2       4    5
//	        ┌──────┬───────┬────┬─────────────────────────────────────────────────────┐
//	        │ sid  │ dbid  │ op │ operands                                            │
//	        └──────┴───────┴────┴─────────────────────────────────────────────────────┘
//	set     varnum key size, varnum value size, key, value
//	remove  varnum key size, key
//	clear   nothing
func AppendMessage(dst []byte, u *Update) []byte {
	dst = binary.BigEndian.AppendUint16(dst, u.SID)
	dst = binary.BigEndian.AppendUint16(dst, u.DBID)
	dst = append(dst, byte(u.Op))
	switch u.Op {
	case OpSet:
		return append(appendSetHead(dst, u), u.Value...)
	case OpRemove:
		dst = appendVarnum(dst, uint64(len(u.Key)))
		return append(dst, u.Key...)
	case OpClear:
		return dst
	}
	return append(dst, u.Value...)
}

// appendSetHead appends the operands of a set without the value.
func appendSetHead(dst []byte, u *Update) []byte {
	dst = appendVarnum(dst, uint64(len(u.Key)))
	dst = appendVarnum(dst, uint64(len(u.Value)))
	return append(dst, u.Key...)
}

// messageSize returns the number of bytes AppendMessage appends.
func messageSize(u *Update) int {
	switch u.Op {
	case OpSet:
		return prefixSize + varnumSize(len(u.Key)) + varnumSize(len(u.Value)) + len(u.Key) + len(u.Value)
	case OpRemove:
		return prefixSize + varnumSize(len(u.Key)) + len(u.Key)
	case OpClear:
		return prefixSize
	}
	return prefixSize + len(u.Value)
}

// ParseMessage decodes a message. Key and Value of the result are parts of msg. The error is nil or
// ErrMalformed; with an error SID and DBID are set as far as msg holds them. An unknown operation
// is no error.
func ParseMessage(msg []byte) (Update, error) {
	c, err := frame.DecodeChange(msg)
	if err != nil {
		err = ErrMalformed
	}
	return Update{SID: c.SID, DBID: c.DBID, Op: Op(c.Op), Key: c.Key, Value: c.Value}, err
}

// appendVarnum appends n in groups of 7 bits, the most significant group first, each but the last
// with its high bit set.
func appendVarnum(dst []byte, n uint64) []byte {
	for shift := 7 * (varnumSize(int(n)) - 1); shift > 0; shift -= 7 {
		dst = append(dst, 0x80|byte(n>>shift))
	}
	return append(dst, byte(n)&0x7F)
}

// varnumSize returns how many bytes appendVarnum appends for a size in memory.
func varnumSize(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

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
	if v := msg[prefixSize]; v > commitVersion && v <= lastVersion {
		return commit{}, fmt.Errorf("%w: %d", errNewer, msg[prefixSize])
	}
	if msg[prefixSize] != commitVersion || len(msg) != commitMessage {
		return commit{}, fmt.Errorf("%w: %d", errCommitVersion, msg[prefixSize])
	}
	b := msg[prefixSize+1:]
	return commit{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}, nil
}
