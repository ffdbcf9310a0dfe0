// Package checksum compares databases without moving records: each side adds up the digests of its
// records in ranges that both know, in any order.
//
// There are two kinds of ranges: of keys, by their bytes, and of the keys' hashes, where ranges of
// one size have about as many records in every kind of database. A place among the hashes is
// written as 16 hexadecimal digits, so that both kinds are compared as bytes.
package checksum

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"gotycoon/db/dberr"
	"gotycoon/db/owed"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// Database is what is compared. See the methods of db.DB.
type Database interface {
	Scan(heed owed.Heed, from store.Start, visit func(key, stored []byte) bool) error
	Split(stored []byte) (xt int64, value []byte, ok bool)
	Bytewise() bool
	Now() time.Time
	Seen(p *owed.Pending) error
}

// Range is the records whose key, or hash of the key, is at least From and before To; an
// empty To is behind all.
type Range struct{ From, To []byte }

// Part is the sum of the records in a range.
type Part struct {
	Range
	Count int64  // records
	Sum   uint64 // of their digests
}

// Options of Sum and Digests.
type Options struct {
	Heed  owed.Heed // ends the work
	Hash  bool      // ranges are of hashes
	Parts int       // into which each range is divided; 0 means 1
	// records that have expired by then, in seconds since 1970, are left out; 0 means now
	At int64
}

// Digest is one record.
type Digest struct {
	Key    []byte
	Digest uint64 // of key, value and expiration time
}

// keyHash returns the place of a key among the hashes.
func keyHash(key []byte) []byte { return hashPlace(xxhash.Sum64(key)) }

func hashPlace(hash uint64) []byte {
	return hex.AppendEncode(nil, binary.BigEndian.AppendUint64(nil, hash))
}

// Sum adds up the records in ranges, which ascend and do not overlap, each divided into parts.
// Ranges of hashes are divided evenly. Ranges of keys are divided by the number of records, into up
// to twice as many parts; for this the database must be in the order of the keys' bytes, otherwise
// the error is ErrNotImplemented. Sum reads in small steps, and nobody waits for it; a record
// that changes meanwhile counts as it was or as it is. It reads the whole database, unless ranges
// of keys name a part of a database in their order.
func Sum(d Database, p *owed.Pending, ranges []Range, o Options) ([]Part, error) {
	divide := o.Parts > 1 && !o.Hash
	if divide && !d.Bytewise() {
		return nil, dberr.ErrNotImplemented
	}
	if o.Parts > 1 && o.Hash {
		ranges = divideHashes(ranges, uint64(o.Parts))
	}
	all := make([]splitter, len(ranges))
	for i, r := range ranges {
		all[i] = splitter{quantum: 1, most: 2 * max(o.Parts, 1)}
		if !divide {
			all[i].most = 1
		}
		all[i].parts = append(all[i].parts, Part{Range: r})
	}
	err := digests(d, ranges, o, func(i int, key []byte, digest uint64) bool {
		all[i].add(key, digest, divide)
		return true
	})
	if err != nil {
		return nil, err
	}
	var parts []Part
	for _, s := range all {
		parts = append(parts, s.parts...)
	}
	return parts, d.Seen(p)
}

// Digests returns the records in ranges, at most so many. more reports whether there are others.
func Digests(d Database, p *owed.Pending, ranges []Range, o Options, most int) (found []Digest, more bool, err error) {
	err = digests(d, ranges, o, func(_ int, key []byte, digest uint64) bool {
		if more = len(found) == most; more {
			return false
		}
		found = append(found, Digest{bytes.Clone(key), digest})
		return true
	})
	if err == nil {
		err = d.Seen(p)
	}
	return found, more, err
}

// splitter divides a range of keys while the range is read: parts are as small as possible, and
// when there are too many, two neighbours become one.
type splitter struct {
	parts   []Part
	quantum int64 // records in a part
	most    int   // parts
}

func (s *splitter) add(key []byte, digest uint64, divide bool) {
	last := &s.parts[len(s.parts)-1]
	if divide && last.Count == s.quantum {
		if len(s.parts) == s.most {
			s.join()
		}
		if last = &s.parts[len(s.parts)-1]; last.Count == s.quantum {
			next := Part{Range: Range{From: bytes.Clone(key), To: last.To}}
			last.To = next.From
			s.parts = append(s.parts, next)
			last = &s.parts[len(s.parts)-1]
		}
	}
	last.Count++
	last.Sum += digest
}

// join makes one part of each two.
func (s *splitter) join() {
	n := 0
	for i := 0; i < len(s.parts); i += 2 {
		p := s.parts[i]
		if i+1 < len(s.parts) {
			q := s.parts[i+1]
			p.To, p.Count, p.Sum = q.To, p.Count+q.Count, p.Sum+q.Sum
		}
		s.parts[n] = p
		n++
	}
	s.parts = s.parts[:n]
	s.quantum *= 2
}

// divideHashes divides ranges of hashes evenly. Ends that are no hashes stay where they are.
func divideHashes(ranges []Range, parts uint64) (all []Range) {
	for _, r := range ranges {
		from, to := hashOf(r.From, 0), hashOf(r.To, 0)
		// of 2^64 where both are 0: in arithmetic of 64 bits the same
		width := (to-from-1)/parts + 1
		rest := r
		for i := uint64(1); i < parts && width > 0 && i*width < to-from-1; i++ {
			end := hashPlace(from + i*width)
			all = append(all, Range{rest.From, end})
			rest.From = end
		}
		all = append(all, rest)
	}
	return all
}

func hashOf(place []byte, empty uint64) uint64 {
	var b [8]byte
	if n, err := hex.Decode(b[:], place[:min(len(place), 16)]); err != nil || n < len(b) {
		return empty
	}
	return binary.BigEndian.Uint64(b[:])
}

// digests visits the live records in ranges, each with the index of its range, until visit returns
// false.
func digests(d Database, ranges []Range, o Options, visit func(i int, key []byte, digest uint64) bool) error {
	at := o.At
	if at == 0 {
		at = d.Now().Unix()
	}
	r := digester{db: d, heed: o.Heed, at: at, hash: xxhash.New()}
	if o.Hash || !d.Bytewise() {
		return r.scan(store.Start{Edge: true}, func(key []byte, digest func() uint64) bool {
			place := key
			if o.Hash {
				place = keyHash(key)
			}
			i, in := findRange(ranges, place)
			return !in || visit(i, key, digest())
		})
	}
	more := true
	for i := 0; i < len(ranges) && more; i++ {
		to := ranges[i].To
		err := r.scan(store.Start{Key: ranges[i].From, Inclusive: true}, func(key []byte, digest func() uint64) bool {
			if len(to) > 0 && bytes.Compare(key, to) >= 0 {
				return false
			}
			more = visit(i, key, digest())
			return more
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// findRange returns the range that a place is in.
func findRange(ranges []Range, place []byte) (int, bool) {
	i, exact := slices.BinarySearchFunc(ranges, place, func(r Range, place []byte) int { return bytes.Compare(r.From, place) })
	if !exact {
		i--
	}
	return i, i >= 0 && (len(ranges[i].To) == 0 || bytes.Compare(place, ranges[i].To) < 0)
}

// digester reads a database for digests.
type digester struct {
	db   Database
	heed owed.Heed
	at   int64
	hash *xxhash.Digest
}

// scan visits the live records from a place on until visit returns false.
func (r *digester) scan(from store.Start, visit func(key []byte, digest func() uint64) bool) error {
	return r.db.Scan(r.heed, from, func(key, stored []byte) bool {
		xt, value, ok := r.db.Split(stored)
		if !ok || record.Expired(xt, r.at) {
			return true
		}
		return visit(key, func() uint64 { return r.digest(key, xt, value) })
	})
}

// digest of a record:
//
//	xxhash64 of: length of the key 8 | expiration time 8 | key | value
//
// The numbers are big-endian; a record that stays has MaxXT, in every database.
func (r *digester) digest(key []byte, xt int64, value []byte) uint64 {
	r.hash.Reset()
	var head [16]byte
	binary.BigEndian.PutUint64(head[:], uint64(len(key)))
	binary.BigEndian.PutUint64(head[8:], uint64(xt))
	_, _ = r.hash.Write(head[:]) // documented never to fail, these three
	_, _ = r.hash.Write(key)
	_, _ = r.hash.Write(value)
	return r.hash.Sum64()
}
