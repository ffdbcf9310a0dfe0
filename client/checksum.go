package client

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gotycoon/httpapi/tsv"
)

// Range is the records whose key, or hash of the key, is at least From and before To; an empty To is behind all.
type Range struct{ From, To string }

// Part is what a server has in a range.
type Part struct {
	Range
	Count int64  // records
	Sum   uint64 // of digests of key, value and expiration time
}

// ChecksumOptions say which records are meant.
type ChecksumOptions struct {
	Hash   bool      // ranges are of the keys' hashes, in 16 hexadecimal digits, else of the keys' bytes
	Ranges []Range   // that do not overlap; empty: all
	Parts  int       // into which each range is divided; 0 means 1
	At     time.Time // what has expired by then is left out; zero: the server's now
}

// Checksum adds up the digests of records on the server, which must be one of ours: NotImplemented from others, and where ranges of
// keys are to be divided of a database in another order. ts is a time stamp of the server: every update before it is in.
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

// Digests returns records of the ranges by key, each with its digest, and at most so many; more tells that there are others.
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

// rows are the parameters.
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
