package remote

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"gotycoon/client"
	sums "gotycoon/db/checksum"
	"gotycoon/db/owed"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// digester gives what a comparison asks a server for. A gotycoon server computes it (client.DB); of
// an original the records are read, and it is computed here (reading).
type digester interface {
	Checksum(ctx context.Context, o client.ChecksumOptions) (parts []client.Part, ts uint64, err error)
	Digests(ctx context.Context, o client.ChecksumOptions, most int) (digests map[string]string, more bool, ts uint64, err error)
}

// reading is a database of a server that has no checksums. Each question reads all its records
// through a cursor, in an order that only the server knows. The memory that this needs does not
// depend on the number of records: sums of ranges are kept, and digests up to a limit.
type reading struct {
	server *client.Client
	db     *client.DB
}

// byHashOnly refuses ranges of keys: without a known order each of them would read everything too,
// and could not be divided by the number of records.
func byHashOnly(o client.ChecksumOptions) error {
	if o.Hash {
		return nil
	}
	return &client.Error{Code: client.NotImplemented, Message: "the server has no checksums, so it can be compared with -by hash only"}
}

// Checksum implements digester.
func (r *reading) Checksum(ctx context.Context, o client.ChecksumOptions) ([]client.Part, uint64, error) {
	if err := byHashOnly(o); err != nil {
		return nil, 0, err
	}
	found, err := sums.Sum(&cursorScan{ctx: ctx, db: r.db}, nil, rangesOf(o), sums.Options{Hash: true, Parts: o.Parts, At: o.At.Unix()})
	if err != nil {
		return nil, 0, err
	}
	parts := make([]client.Part, len(found))
	for i, s := range found {
		parts[i] = client.Part{Range: client.Range{From: string(s.From), To: string(s.To)}, Count: s.Count, Sum: s.Sum}
	}
	ts, err := serverTime(ctx, r.server)
	return parts, stampOf(ts), err
}

// Digests implements digester.
func (r *reading) Digests(ctx context.Context, o client.ChecksumOptions, most int) (map[string]string, bool, uint64, error) {
	if err := byHashOnly(o); err != nil {
		return nil, false, 0, err
	}
	list, more, err := sums.Digests(&cursorScan{ctx: ctx, db: r.db}, nil, rangesOf(o), sums.Options{Hash: true, At: o.At.Unix()}, most)
	if err != nil {
		return nil, false, 0, err
	}
	digests := make(map[string]string, len(list))
	for _, d := range list {
		digests[string(d.Key)] = fmt.Sprintf("%016x", d.Digest)
	}
	ts, err := serverTime(ctx, r.server)
	return digests, more, stampOf(ts), err
}

func rangesOf(o client.ChecksumOptions) []sums.Range {
	ranges := make([]sums.Range, 0, len(o.Ranges)+1)
	for _, r := range o.Ranges {
		ranges = append(ranges, sums.Range{From: []byte(r.From), To: []byte(r.To)})
	}
	if len(ranges) == 0 {
		ranges = append(ranges, sums.Range{})
	}
	return ranges
}

// serverTime asks for the clock of a server, which its time stamps follow.
func serverTime(ctx context.Context, c *client.Client) (time.Time, error) {
	rows, err := c.Report(ctx)
	if err != nil {
		return time.Time{}, err
	}
	const name = "serv_current_time"
	seconds, err := strconv.ParseFloat(string(rows[name]), 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the server's report has no %s: %w", name, err)
	}
	return time.UnixMicro(int64(seconds * 1e6)), nil
}

// stampOf returns a moment as a time stamp of an update log.
func stampOf(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

// cursorScan shows the records of another server to package checksum as a database of this process.
type cursorScan struct {
	ctx    context.Context
	db     *client.DB
	stored []byte // the record that visit looks at
}

// Scan visits all records.
func (s *cursorScan) Scan(_ owed.Heed, _ store.Start, visit func(key, stored []byte) bool) error {
	for r, err := range s.db.All(s.ctx) {
		if err != nil {
			return err
		}
		xt := record.MaxXT
		if !r.Expires.IsZero() {
			xt = r.Expires.Unix()
		}
		s.stored = append(record.AppendXT(s.stored[:0], xt), r.Value...)
		if !visit([]byte(r.Key), s.stored) {
			return nil
		}
	}
	return nil
}

// Split takes a stored value apart.
func (s *cursorScan) Split(stored []byte) (xt int64, value []byte, ok bool) {
	return record.Split(stored)
}

// Bytewise reports whether the records come in the order of their keys' bytes.
func (s *cursorScan) Bytewise() bool { return false }

// Now is the time by which records without another limit count as expired.
func (s *cursorScan) Now() time.Time { return time.Now() }

// Seen has nothing to wait for: the server has answered.
func (s *cursorScan) Seen(*owed.Pending) error { return nil }
