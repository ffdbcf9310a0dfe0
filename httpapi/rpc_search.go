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

func rpcMatchPrefix(c *call) error {
	prefix, err := c.in.need("prefix")
	if err != nil {
		return err
	}
	if err := c.beginLong(); err != nil {
		return err
	}
	keys, err := keymatch.MatchPrefix(c.db, c.heed, &c.conn.Owed, prefix, c.in.intOr("max", -1), c.out.hold)
	return c.outKeys(keys, err)
}

func rpcMatchRegex(c *call) error {
	regex, err := c.in.need("regex")
	if err != nil {
		return err
	}
	if err := c.beginLong(); err != nil {
		return err
	}
	keys, err := keymatch.MatchRegex(c.db, c.heed, &c.conn.Owed, string(regex), c.in.intOr("max", -1), c.out.hold)
	return c.outKeys(keys, err)
}

func rpcMatchSimilar(c *call) error {
	origin, err := c.in.need("origin")
	if err != nil {
		return err
	}
	distance := c.in.intOr("range", 1)
	if distance < 0 {
		distance = 1
	}
	if err := c.beginLong(); err != nil {
		return err
	}
	keys, err := keymatch.MatchSimilar(c.db, c.heed, &c.conn.Owed, origin, distance, c.in.Has("utf"),
		c.in.intOr("max", -1), c.out.hold)
	return c.outKeys(keys, err)
}

// outKeys adds a row per key with its place in the result, since the rows are sent in the order of
// the keys.
func (c *call) outKeys(keys [][]byte, err error) error {
	if err != nil {
		return err
	}
	for i, key := range keys {
		c.out.rows.Add(c.out.internBytes("_", key), c.out.internInt(int64(i)))
	}
	c.out.addInt("num", int64(len(keys)))
	return nil
}

// maxChecksumParts is how many parts one call may ask for, so that an answer stays small.
const maxChecksumParts = 1 << 17

// errUnordered: ranges of keys cannot be divided by the number of records.
var errUnordered = fmt.Errorf("%w: the database is not in the order of the keys' bytes: use by=hash, or parts=1",
	errNotImplemented)

// rpcChecksum adds up the records of a database in parts. Two servers whose sums differ are
// compared part by part, until the records that differ are found, without moving any records.
func rpcChecksum(c *call) error {
	ranges, o, err := c.in.checksum()
	if err != nil {
		return err
	}
	if err := c.beginLong(); err != nil {
		return err
	}
	o.Heed = c.heed
	d := c.db
	c.out.addInt("ts", int64(d.Stamp()))
	if c.in.Has("keys") {
		most := int(min(max(c.in.intOr("keys", 0), 1), maxChecksumParts))
		found, more, err := checksum.Digests(d, &c.conn.Owed, ranges, o, most)
		if err != nil {
			return err
		}
		for _, k := range found {
			c.out.rows.Add(c.out.internBytes("_", k.Key), c.out.intern(fmt.Sprintf("%016x", k.Digest)))
		}
		if more {
			c.out.addInt("more", 1)
		}
		c.out.rows.Sort()
		return nil
	}
	parts, err := checksum.Sum(d, &c.conn.Owed, ranges, o)
	if errors.Is(err, dberr.ErrNotImplemented) {
		return errUnordered
	}
	if err != nil {
		return err
	}
	for _, p := range parts {
		head := fmt.Sprintf("%d:%016x:", p.Count, p.Sum)
		c.out.rows.Add(c.out.internBytes("_", p.From), c.out.internBytes(head, p.To))
	}
	c.out.rows.Sort()
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
