// Package ordered gives a store that keeps its records in the order of the keys' bytes another order: descending, or by
// the number that a key begins with. The store below stays as it is.
package ordered

import (
	"bytes"
	"encoding/binary"
	"math"
	"sync"

	"gotycoon/db/expr"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// keyPrefix returns how many bytes longer a key is in the store of a database with an order.
func KeyPrefix(o expr.Order) int {
	if o == expr.Decimal || o == expr.DecimalDesc {
		return decimalSize
	}
	return 0
}

// newOrdered returns a store that keeps its records in another order than s, which orders them by bytes and must be
// used by nobody else. Scans go the other way for descending orders; for decimal ones each key is stored behind its
// number, see appendDecimal.
func New(s store.Store, order expr.Order) store.Store {
	flipped := &flippedStore{s}
	switch order {
	case expr.LexicalDesc:
		return flipped
	case expr.Decimal:
		return newDecimalStore(s)
	case expr.DecimalDesc:
		return newDecimalStore(flipped)
	}
	return s
}

// unordered returns the store that newOrdered was given.
func Unwrap(s store.Store) store.Store {
	for {
		switch o := s.(type) {
		case *flippedStore:
			s = o.Store
		case *decimalStore:
			s = o.Store
		default:
			return s
		}
	}
}

// flippedStore is a store in the opposite order.
type flippedStore struct{ store.Store }

func (s *flippedStore) Scan(from store.Start, visit func(key, value []byte) bool) error {
	from.Backward = !from.Backward
	return s.Store.Scan(from, visit)
}

// Larger scratch space is not kept.
const (
	mostUpdates = 1 << 10
	mostBytes   = 64 << 10
)

// decimalStore is a store ordered by the numbers that keys begin with.
type decimalStore struct {
	store.Store
	rooms sync.Pool // of *[]byte, for keys of readers

	// Scratch of Apply, whose caller holds the commit lock.
	ups  []ulog.Update
	keys []byte
}

func newDecimalStore(s store.Store) *decimalStore {
	return &decimalStore{Store: s, rooms: sync.Pool{New: func() any { return new([]byte) }}}
}

func (s *decimalStore) Get(dst, key []byte, r store.Reader) (value []byte, found bool, err error) {
	room := s.rooms.Get().(*[]byte)
	defer s.rooms.Put(room)
	*room = appendDecimal((*room)[:0], key)
	return s.Store.Get(dst, *room, r)
}

func (s *decimalStore) Apply(at ulog.Stamp, ups []ulog.Update) {
	s.ups, s.keys = s.ups[:0], s.keys[:0]
	for _, u := range ups {
		if u.Op == ulog.OpSet || u.Op == ulog.OpRemove {
			begin := len(s.keys)
			s.keys = appendDecimal(s.keys, u.Key) // earlier keys keep the array that they are in
			u.Key = s.keys[begin:]
		}
		s.ups = append(s.ups, u)
	}
	s.Store.Apply(at, s.ups)
	clear(s.ups)
	if cap(s.ups) > mostUpdates || cap(s.keys) > mostBytes {
		s.ups, s.keys = nil, nil
	}
}

func (s *decimalStore) Scan(from store.Start, visit func(key, value []byte) bool) error {
	if !from.Edge {
		from.Key = appendDecimal(nil, from.Key)
	}
	return s.Store.Scan(from, func(key, value []byte) bool { return visit(key[decimalSize:], value) })
}

// decimalSize is the length of what appendDecimal puts in front of a key.
const decimalSize = 16

// fractionDigits is how many digits behind the point count.
const fractionDigits = 16

// appendDecimal appends a key in the form whose byte order is the decimal order: the integer that it begins with, the
// fraction behind it, the key. Both are 64-bit numbers, big-endian with the sign bit inverted, and carry the sign.
// Leading bytes up to 0x20 and 0x7f are skipped, a key without a number counts as 0, "+" is no sign (all as in
// the original). Integers beyond 64 bits saturate; the original's order has no meaning there.
func appendDecimal(dst, key []byte) []byte {
	integer, fraction := splitDecimal(key)
	dst = binary.BigEndian.AppendUint64(dst, uint64(integer)^1<<63)
	dst = binary.BigEndian.AppendUint64(dst, uint64(fraction)^1<<63)
	return append(dst, key...)
}

// splitDecimal returns the number that a key begins with, the fraction in units of 10^-16.
func splitDecimal(key []byte) (integer, fraction int64) {
	for len(key) > 0 && (key[0] <= ' ' || key[0] == 0x7f) {
		key = key[1:]
	}
	sign := int64(1)
	if len(key) > 0 && key[0] == '-' {
		sign, key = -1, key[1:]
	}
	for ; len(key) > 0 && isDigit(key[0]); key = key[1:] {
		digit := int64(key[0] - '0')
		if integer > (math.MaxInt64-digit)/10 {
			integer = math.MaxInt64 // and so for all digits that follow
			continue
		}
		integer = integer*10 + digit
	}
	if len(key) > 0 && key[0] == '.' {
		fraction = leadingFraction(key[1:])
	}
	return sign * integer, sign * fraction
}

// leadingFraction reads digits behind a point, in units of 10^-16.
func leadingFraction(digits []byte) (n int64) {
	place := 0
	for ; place < fractionDigits && place < len(digits) && isDigit(digits[place]); place++ {
		n = n*10 + int64(digits[place]-'0')
	}
	for ; place < fractionDigits; place++ {
		n *= 10
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// compareKeys returns where key a stands from key b: before it (negative), behind it, or is the same.
func Compare(o expr.Order, a, b []byte) int {
	switch o {
	case expr.LexicalDesc:
		return -bytes.Compare(a, b)
	case expr.Decimal:
		return bytes.Compare(appendDecimal(nil, a), appendDecimal(nil, b))
	case expr.DecimalDesc:
		return -bytes.Compare(appendDecimal(nil, a), appendDecimal(nil, b))
	}
	return bytes.Compare(a, b)
}
