package client

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gotycoon/client/wire/tsv"
)

// Range is a range of keys, or of hashes of keys: from From on, before To. An empty To means no
// end.
type Range struct{ From, To string }

// Part is the sum of the records in a range.
type Part struct {
	Range
	Count int64  // records
	Sum   uint64 // sum of the digests of key, value and expiration time
}

// ChecksumOptions select the records.
type ChecksumOptions struct {
	Hash   bool      // ranges are of key hashes in 16 hexadecimal digits, else of the keys' bytes
	Ranges []Range   // must not overlap; empty: all records
	Parts  int       // each range is divided into so many parts; 0 means 1
	At     time.Time // records expired by then are left out; zero: the server's present time
}

// Checksum adds up the digests of records on the server, which must be gotycoon: other servers
// return NotImplemented. So does a database whose order is not that of the keys' bytes, if a range
// of keys is to be divided. ts is a time stamp: the sums include every update before it.
func (db *DB) Checksum(ctx context.Context, o ChecksumOptions) (parts []Part, ts uint64, err error) {
	out, err := db.call(ctx, "checksum", o.rows(db))
	if err != nil {
		return nil, 0, err
	}
	for _, name := range out.sorted() {
		from, isPart := strings.CutPrefix(name, "_")
		if !isPart {
			continue
		}
		p := Part{Range: Range{From: from}}
		columns := strings.SplitN(string(out[name]), ":", 3)
		if len(columns) == 3 {
			p.To = columns[2]
			p.Sum, err = strconv.ParseUint(columns[1], 16, 64)
		}
		if err == nil {
			p.Count, err = strconv.ParseInt(columns[0], 10, 64)
		}
		if err != nil {
			return nil, 0, networkError(fmt.Errorf("checksum: the answer %q is not understood: %w", out[name], err))
		}
		parts = append(parts, p)
	}
	return parts, uint64(out.Int("ts")), nil
}

// Digests returns the digests of the records in the ranges, by key, at most most of them; more
// reports that there are others.
func (db *DB) Digests(ctx context.Context, o ChecksumOptions, most int) (digests map[string]string, more bool, ts uint64, err error) {
	rows := appendRow(o.rows(db), "keys", strconv.Itoa(most))
	out, err := db.call(ctx, "checksum", rows)
	if err != nil {
		return nil, false, 0, err
	}
	digests = make(map[string]string, len(out))
	for name, digest := range out {
		if key, is := strings.CutPrefix(name, "_"); is {
			digests[key] = string(digest)
		}
	}
	return digests, out.Int("more") != 0, uint64(out.Int("ts")), nil
}

// rows returns the parameters of the procedure.
func (o ChecksumOptions) rows(db *DB) []tsv.Row {
	by := "key"
	if o.Hash {
		by = "hash"
	}
	rows := db.rows("by", by, "parts", strconv.Itoa(max(1, o.Parts)))
	if !o.At.IsZero() {
		rows = appendRow(rows, "at", strconv.FormatInt(o.At.Unix(), 10))
	}
	for _, r := range o.Ranges {
		rows = appendRow(rows, "_"+r.From, r.To)
	}
	return rows
}
