package ulog

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"

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
	perMilli   = update.PerMilli
	maxStamp   = Stamp(1) << 63 // the year 2262; anything from here on is damage
	startSlack = Stamp(1_000_000_000)
)

// StampAt returns the smallest stamp of a moment.
func StampAt(t time.Time) Stamp { return update.StampAt(t) }

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
	var u Update
	if len(msg) >= prefixSize-1 {
		u.SID = binary.BigEndian.Uint16(msg)
		u.DBID = binary.BigEndian.Uint16(msg[2:])
	}
	if len(msg) < prefixSize {
		return u, ErrMalformed
	}
	u.Op = Op(msg[4])
	return u, parseOperands(&u, msg[prefixSize:])
}

func parseOperands(u *Update, rest []byte) error {
	switch u.Op {
	case OpSet:
		ksize, rest, ok1 := cutVarnum(rest)
		vsize, rest, ok2 := cutVarnum(rest)
		n := uint64(len(rest))
		if !ok1 || !ok2 || ksize > n || vsize != n-ksize {
			return ErrMalformed
		}
		u.Key, u.Value = rest[:ksize:ksize], rest[ksize:]
	case OpRemove:
		ksize, rest, ok := cutVarnum(rest)
		if !ok || ksize != uint64(len(rest)) {
			return ErrMalformed
		}
		u.Key = rest
	case OpClear:
		if len(rest) > 0 {
			return ErrMalformed
		}
	default:
		u.Value = rest
	}
	return nil
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

// cutVarnum splits a varnum off the front of src. Like the original it accepts forms that are
// longer than necessary.
func cutVarnum(src []byte) (n uint64, rest []byte, ok bool) {
	for i, b := range src {
		if n > math.MaxUint64>>7 {
			return 0, nil, false
		}
		n = n<<7 | uint64(b&0x7F)
		if b < 0x80 {
			return n, src[i+1:], true
		}
	}
	return 0, nil, false
}
