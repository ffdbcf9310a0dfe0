package httpapi

import (
	"bytes"
	"errors"
	"fmt"

	"gotycoon/db/checksum"
	"gotycoon/db/dberr"
	"gotycoon/db/keymatch"
)

// Procedures that go through a database. They may take long: replies to earlier requests leave
// first, and the work ends when the client has gone.

func rpcMatchPrefix(s *Session) error {
	prefix, err := s.in.need("prefix")
	if err != nil {
		return err
	}
	if err := s.beginLong(); err != nil {
		return err
	}
	keys, err := keymatch.MatchPrefix(s.call.db, s.heed, &s.c.Owed, prefix, s.in.intOr("max", -1), s.out.hold)
	return s.outKeys(keys, err)
}

func rpcMatchRegex(s *Session) error {
	regex, err := s.in.need("regex")
	if err != nil {
		return err
	}
	if err := s.beginLong(); err != nil {
		return err
	}
	keys, err := keymatch.MatchRegex(s.call.db, s.heed, &s.c.Owed, string(regex), s.in.intOr("max", -1), s.out.hold)
	return s.outKeys(keys, err)
}

func rpcMatchSimilar(s *Session) error {
	origin, err := s.in.need("origin")
	if err != nil {
		return err
	}
	distance := s.in.intOr("range", 1)
	if distance < 0 {
		distance = 1
	}
	if err := s.beginLong(); err != nil {
		return err
	}
	keys, err := keymatch.MatchSimilar(s.call.db, s.heed, &s.c.Owed, origin, distance, s.in.Has("utf"),
		s.in.intOr("max", -1), s.out.hold)
	return s.outKeys(keys, err)
}

// outKeys adds a row per key with its place in the result, since the rows are sent in the order of
// the keys.
func (s *Session) outKeys(keys [][]byte, err error) error {
	if err != nil {
		return err
	}
	for i, key := range keys {
		s.out.rows.Add(s.out.internBytes("_", key), s.out.internInt(int64(i)))
	}
	s.out.addInt("num", int64(len(keys)))
	return nil
}

// maxChecksumParts is how many parts one call may ask for, so that an answer stays small.
const maxChecksumParts = 1 << 17

// errUnordered: ranges of keys cannot be divided by the number of records.
var errUnordered = fmt.Errorf("%w: the database is not in the order of the keys' bytes: use by=hash, or parts=1",
	errNotImplemented)

// rpcChecksum adds up the records of a database in parts. Two servers whose sums differ are
// compared part by part, until the records that differ are found, without moving any records.
func rpcChecksum(s *Session) error {
	ranges, o, err := s.in.checksum()
	if err != nil {
		return err
	}
	if err := s.beginLong(); err != nil {
		return err
	}
	o.Heed = s.heed
	d := s.call.db
	s.out.addInt("ts", int64(d.Stamp()))
	if s.in.Has("keys") {
		most := int(min(max(s.in.intOr("keys", 0), 1), maxChecksumParts))
		found, more, err := checksum.Digests(d, &s.c.Owed, ranges, o, most)
		if err != nil {
			return err
		}
		for _, k := range found {
			s.out.rows.Add(s.out.internBytes("_", k.Key), s.out.intern(fmt.Sprintf("%016x", k.Digest)))
		}
		if more {
			s.out.addInt("more", 1)
		}
		s.out.rows.Sort()
		return nil
	}
	parts, err := checksum.Sum(d, &s.c.Owed, ranges, o)
	if errors.Is(err, dberr.ErrNotImplemented) {
		return errUnordered
	}
	if err != nil {
		return err
	}
	for _, p := range parts {
		head := fmt.Sprintf("%d:%016x:", p.Count, p.Sum)
		s.out.rows.Add(s.out.internBytes("_", p.From), s.out.internBytes(head, p.To))
	}
	s.out.rows.Sort()
	return nil
}

// checksum returns the parameters of rpcChecksum.
func (in *input) checksum() ([]checksum.Range, checksum.Options, error) {
	o := checksum.Options{
		Hash:  true,
		Parts: int(min(max(in.intOr("parts", 1), 1), maxChecksumParts)),
		At:    max(in.intOr("at", 0), 0),
	}
	if by, ok := in.Get("by"); ok {
		o.Hash = string(by) != "key"
		if o.Hash && string(by) != "hash" {
			return nil, o, errInvalidParameters
		}
	}
	var ranges []checksum.Range
	in.records(func(name, value []byte) bool {
		ranges = append(ranges, checksum.Range{From: name[1:], To: value})
		return len(ranges) <= maxChecksumParts
	})
	if len(ranges) == 0 {
		from, _ := in.Get("from")
		to, _ := in.Get("to")
		ranges = []checksum.Range{{From: from, To: to}}
	}
	if len(ranges)*o.Parts > maxChecksumParts || !ascending(ranges) {
		return nil, o, errInvalidParameters
	}
	return ranges, o, nil
}

// ascending reports whether no two ranges overlap, and none ends before it begins.
func ascending(ranges []checksum.Range) bool {
	for i, r := range ranges {
		last := i == len(ranges)-1
		switch {
		case len(r.To) == 0 && !last, len(r.To) > 0 && bytes.Compare(r.From, r.To) >= 0:
			return false
		case !last && bytes.Compare(r.To, ranges[i+1].From) > 0:
			return false
		}
	}
	return true
}
