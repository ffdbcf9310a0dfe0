package frame

import (
	"encoding/binary"
	"errors"
	"math"
)

// Change is an update as the log of a server has it, and as a Message brings it:
//
//	sid 2 | dbid 2 | op 1 | operands
//
//	set     varnum key size, varnum value size, key, value
//	remove  varnum key size, key
//	clear   nothing
//
// A varnum has groups of 7 bits, the most significant group first, each but the last with its high
// bit set.
//
// The stored form of a value begins with the Unix time in seconds at which the record expires, in 5
// bytes, unless its database has no expiration times (ktopts=p).
type Change struct {
	SID   uint16 // server where the change was made
	DBID  uint16 // index of the database
	Op    ChangeOp
	Key   []byte
	Value []byte // of ChangeSet in stored form; of an unknown operation its operands
}

// ChangeOp is what a change does.
type ChangeOp byte

// The operations that servers log. The original reserves others and never writes them.
const (
	ChangeSet    ChangeOp = 0xA1
	ChangeRemove ChangeOp = 0xA2
	ChangeClear  ChangeOp = 0xA5
)

// changeHead is the size of what every change begins with.
const changeHead = 5

// ErrMalformed means that the sizes in a change do not add up to its length.
var ErrMalformed = errors.New("the sizes in a change do not add up")

// DecodeChange decodes a change that fills p. Key and Value are slices of p. The error is nil or
// ErrMalformed; with an error SID and DBID are set as far as p holds them. An unknown operation is
// no error.
func DecodeChange(p []byte) (c Change, err error) {
	if len(p) >= changeHead-1 {
		c.SID, c.DBID = binary.BigEndian.Uint16(p), binary.BigEndian.Uint16(p[2:])
	}
	if len(p) < changeHead {
		return c, ErrMalformed
	}
	c.Op = ChangeOp(p[4])
	rest := p[changeHead:]
	switch c.Op {
	case ChangeSet:
		ksize, rest, ok1 := CutVarnum(rest)
		vsize, rest, ok2 := CutVarnum(rest)
		n := uint64(len(rest))
		if !ok1 || !ok2 || ksize > n || vsize != n-ksize {
			return c, ErrMalformed
		}
		c.Key, c.Value = rest[:ksize:ksize], rest[ksize:]
	case ChangeRemove:
		ksize, rest, ok := CutVarnum(rest)
		if !ok || ksize != uint64(len(rest)) {
			return c, ErrMalformed
		}
		c.Key = rest
	case ChangeClear:
		if len(rest) > 0 {
			return c, ErrMalformed
		}
	default:
		c.Value = rest
	}
	return c, nil
}

// CutVarnum splits a varnum off the front of p. Like the original it accepts forms that are longer
// than necessary.
func CutVarnum(p []byte) (n uint64, rest []byte, ok bool) {
	for i, b := range p {
		if n > math.MaxUint64>>7 {
			return 0, nil, false
		}
		n = n<<7 | uint64(b&0x7F)
		if b < 0x80 {
			return n, p[i+1:], true
		}
	}
	return 0, nil, false
}
