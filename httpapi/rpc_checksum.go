package httpapi

import (
	"bytes"
	"errors"
	"fmt"

	"gotycoon/db"
	"gotycoon/db/dberr"
)

// maxChecksumParts is how many parts one call may ask for, so that an answer stays small.
const maxChecksumParts = 1 << 17

// errUnordered: ranges of keys cannot be divided by the number of records.
var errUnordered = fmt.Errorf("%w: the database is not in the order of the keys' bytes: use by=hash, or parts=1", errNotImplemented)

// rpcChecksum adds up the records of a database in parts, so that two servers can be compared without moving records; the original
// does not know it. Input:
//
//	by      "key" or "hash": what ranges are of (default hash); a place among the hashes has 16 hexadecimal digits
//	from    first place of the range (default the first)
//	to      place behind the range (default all)
//	_FROM   TO: instead of from and to any number of ranges, which do not overlap
//	parts   into which each range is divided (default 1)
//	at      leave out what has expired by this time, in seconds since 1970 (default now)
//	keys    list at most so many records instead of adding them up
//
// Output is a row per part, _FROM with the value COUNT:SUM:TO, SUM in 16 hexadecimal digits, or with keys a row per record, _KEY
// with the value DIGEST, and "more" when there are others; and "ts", a time stamp of the server's: every update before it is in.
func rpcChecksum(s *Session) error {
	ranges, o, err := s.checksumInput()
	if err != nil {
		return err
	}
	if err := s.beginLong(); err != nil {
		return err
	}
	o.Heed = s.heed
	d := s.call.db
	s.outInt("ts", int64(d.Stamp()))
	if s.in.Has("keys") {
		return s.outDigests(d.KeyDigests(&s.c.Owed, ranges, o, int(min(max(s.intOr("keys", 0), 1), maxChecksumParts))))
	}
	parts, err := d.Checksum(&s.c.Owed, ranges, o)
	if errors.Is(err, dberr.ErrNotImplemented) {
		return errUnordered
	}
	if err != nil {
		return err
	}
	for _, p := range parts {
		head := fmt.Sprintf("%d:%016x:", p.Count, p.Sum)
		s.out.Add(s.internBytes("_", p.From), s.internBytes(head, p.To))
	}
	s.out.Sort()
	return nil
}

func (s *Session) outDigests(found []db.KeyDigest, more bool, err error) error {
	if err != nil {
		return err
	}
	for _, k := range found {
		s.out.Add(s.internBytes("_", k.Key), s.intern(fmt.Sprintf("%016x", k.Digest)))
	}
	if more {
		s.outInt("more", 1)
	}
	s.out.Sort()
	return nil
}

// checksumInput reads the parameters.
func (s *Session) checksumInput() ([]db.ChecksumRange, db.ChecksumOptions, error) {
	o := db.ChecksumOptions{Hash: true, Parts: int(min(max(s.intOr("parts", 1), 1), maxChecksumParts)), At: max(s.intOr("at", 0), 0)}
	if by, ok := s.in.Get("by"); ok {
		o.Hash = string(by) != "key"
		if o.Hash && string(by) != "hash" {
			return nil, o, errInvalidParameters
		}
	}
	var ranges []db.ChecksumRange
	s.bulk(func(name, value []byte) bool {
		ranges = append(ranges, db.ChecksumRange{From: name[1:], To: value})
		return len(ranges) <= maxChecksumParts
	})
	if len(ranges) == 0 {
		from, _ := s.in.Get("from")
		to, _ := s.in.Get("to")
		ranges = []db.ChecksumRange{{From: from, To: to}}
	}
	if len(ranges)*o.Parts > maxChecksumParts || !ascending(ranges) {
		return nil, o, errInvalidParameters
	}
	return ranges, o, nil
}

// ascending tells whether no two ranges overlap, and none ends before it begins.
func ascending(ranges []db.ChecksumRange) bool {
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
