// Package record is the stored form of a record: the expiration time in front of the value, and
// the numbers that increments keep in a value. Every store, log and snapshot holds values in this
// form; only records of databases with ktopts=p have no expiration time. Besides, it has the words
// in which callers say what is to become of a record: Verdict and When.
package record

import (
	"encoding/binary"
	"math"
)

// XT is a client's expiration argument in seconds. A number that is not negative counts from now
// on; a negative number -t is the absolute time t of the Unix clock.
type XT int64

const (
	// Never as an argument makes a record permanent.
	Never XT = math.MaxInt64
	// MaxXT as an absolute time in seconds means that the record does not expire.
	MaxXT int64 = 1<<40 - 1
)

// XTSize is the length of the expiration time in front of a stored value.
const XTSize = 5

// Absolute turns an argument into the time to store, given the current time in seconds.
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

// AppendXT appends an absolute time in the stored form: 40 bits, big-endian.
func AppendXT(dst []byte, abs int64) []byte {
	return append(dst, byte(abs>>32), byte(abs>>24), byte(abs>>16), byte(abs>>8), byte(abs))
}

// Split takes a stored value apart; value aliases stored. ok is false where stored is too short for
// an expiration time.
func Split(stored []byte) (xt int64, value []byte, ok bool) {
	if len(stored) < XTSize {
		return 0, nil, false
	}
	return int64(stored[0])<<32 | int64(binary.BigEndian.Uint32(stored[1:])), stored[XTSize:], true
}

// SetForever makes a stored value one that does not expire.
func SetForever(stored []byte) {
	if len(stored) >= XTSize {
		AppendXT(stored[:0], MaxXT)
	}
}

// Expired reports whether a record with the absolute time xt has expired. It still lives in the
// second that xt names.
func Expired(xt, now int64) bool { return now > xt }

// Headroom is how many bytes there must be in front of a value that a database stores without a
// copy, see db.(*DB).StoreInPlace: the expiration time overwrites them.
const Headroom = XTSize

// MaxValueSize is the longest value in bytes. Protocols limit requests further.
const MaxValueSize = 1 << 30

// Verdict is what a visitor decides about the record that it was shown.
type Verdict struct {
	Op    VisitOp
	Value []byte // to store, with Store and Renew
	Room  []byte // a large Value as StoreInPlace takes it; nil: Value is copied
	XT    XT     // expiration argument, with Renew
}

// VisitOp is what is done with a visited
type VisitOp int

const (
	Keep    VisitOp = iota // nothing
	Discard                // remove it; nothing where there is none
	Store                  // store Value; an existing record keeps its expiration time
	Renew                  // store Value with the expiration time XT
)

// Visitor is shown a record: its value and absolute expiration time in seconds, or found = false
// where there is none. The slices are valid during the call. The visitor may take its time: nobody
// else can update the key meanwhile. It must not use the same database.
type Visitor func(key, value []byte, xt int64, found bool) Verdict

// When is the condition under which a record is stored.
type When int

const (
	Anyway    When = iota // whether there is one or not
	WhenNew               // there is no record of the key
	WhenThere             // there is one
)
