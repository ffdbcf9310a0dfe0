// Package record is the stored form of a record: the expiration time in front of the value, and
// the numbers that increments keep in a value. Every store, log and snapshot holds values in this
// form; only records of databases with ktopts=p have no expiration time.
package record

import (
	"encoding/binary"
	"math"
)

// XT is a client's expiration argument in seconds: not negative, from now on; negative, the absolute time -xt of
// the Unix clock (reference: section 6.2).
type XT int64

const (
	// Never as an argument makes a record permanent.
	Never XT = math.MaxInt64
	// MaxXT as an absolute time in seconds means that the record does not expire.
	MaxXT int64 = 1<<40 - 1
)

// prefixLen is the length of the expiration time in front of a stored value.
const XTSize = 5

// absolute turns an argument into the time to store, given the current time in seconds.
func Absolute(xt XT, now int64) int64 {
	switch {
	case xt == math.MinInt64: // has no positive counterpart
		return MaxXT
	case xt < 0:
		return min(int64(-xt), MaxXT)
	case int64(xt) >= MaxXT-now:
		return MaxXT
	}
	return now + int64(xt)
}

// appendPrefix appends an absolute time in the stored form: 40 bits, big-endian.
func AppendXT(dst []byte, abs int64) []byte {
	return append(dst, byte(abs>>32), byte(abs>>24), byte(abs>>16), byte(abs>>8), byte(abs))
}

// splitValue takes a stored value apart; value aliases stored. ok is false where stored has no room for the time.
func Split(stored []byte) (xt int64, value []byte, ok bool) {
	if len(stored) < XTSize {
		return 0, nil, false
	}
	return int64(stored[0])<<32 | int64(binary.BigEndian.Uint32(stored[1:])), stored[XTSize:], true
}

// setForever makes a stored value one that does not expire.
func SetForever(stored []byte) {
	if len(stored) >= XTSize {
		AppendXT(stored[:0], MaxXT)
	}
}

// expired tells whether a record with this absolute time is gone. It still lives in the second that the time names.
func Expired(xt, now int64) bool { return now > xt }

// Headroom is how many bytes there must be in front of a value that is stored without being copied: see SetInPlace.
const Headroom = XTSize

// MaxValueSize is the longest stored value in bytes. Requests are limited further by the protocols.
const MaxValueSize = 1 << 30
