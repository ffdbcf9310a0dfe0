package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"gotycoon/client"
	"gotycoon/tools/show"
)

// bigScan is one run of bigkeys.
type bigScan struct {
	*call
	most *int64
	max  *int64
	rate *int64

	found                []client.Size // the largest, the largest of them first
	records, keys, value int64         // number of records, bytes of keys and values
}

// bigKeys prints the largest records of a database. It goes through the database with a cursor, at
// a pace, and has the server tell sizes only.
func bigKeys(ctx context.Context, c *call) error {
	b := &bigScan{call: c.withDB().withHex().withHexOut().withJSON()}
	b.most = c.flags.Integer("n", 10, "print so many records (default 10)")
	b.max = c.flags.Integer("max", -1, "look at so many records at most; negative: at all (default)")
	b.rate = c.flags.Integer("rate", 20_000, "look at so many records per second at most (default 20000; 0: no limit)")
	if err := c.parse(0, 1); err != nil {
		return err
	}
	switch {
	case *b.most < 1:
		return usageError("-n: must be at least 1")
	case *b.rate < 0:
		return usageError("-rate: must not be negative")
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	rows, err := db.Status(ctx)
	if err != nil {
		return c.failed("DB::status", err)
	}
	progress := show.NewProgress(io.Discard, c.stdout, c.stderr, show.ProgressOptions{Items: "records", Number: rows.Int("count")})
	err = b.scan(ctx, db, progress)
	progress.End()
	if err != nil {
		return c.failed("Cursor::get", err)
	}
	return b.tell()
}

// scan looks at the records of the database.
func (b *bigScan) scan(ctx context.Context, db *client.DB, progress show.Progress) error {
	seen, begin := int64(0), time.Now()
	for r, err := range sizes(ctx, db) {
		if err != nil {
			return err
		}
		if seen++; *b.max >= 0 && seen > *b.max {
			return nil
		}
		progress.Done(1, 0)
		if len(b.args) == 0 || strings.HasPrefix(r.Key, b.args[0]) {
			b.note(r)
		}
		if err := b.keepPace(ctx, seen, begin); err != nil {
			return err
		}
	}
	return nil
}

// keepPace waits while more records have been looked at than the rate allows.
func (b *bigScan) keepPace(ctx context.Context, seen int64, begin time.Time) error {
	const worthwhile = 10 * time.Millisecond // shorter pauses take longer than they should
	if *b.rate == 0 {
		return nil
	}
	ahead := time.Duration(float64(seen)/float64(*b.rate)*float64(time.Second)) - time.Since(begin)
	if ahead < worthwhile {
		return nil
	}
	return pause(ctx, ahead)
}

// sizes goes through the sizes of all records. A server that does not know the question, such as
// the original, is asked for the records themselves.
func sizes(ctx context.Context, db *client.DB) iter.Seq2[client.Size, error] {
	return func(yield func(client.Size, error) bool) {
		cursor := db.Cursor()
		defer cursor.Close()
		err := cursor.Jump(ctx)
		if errors.Is(err, client.ErrNoRecord) {
			return
		}
		if err != nil {
			yield(client.Size{}, err)
			return
		}
		for r, err := range cursor.Sizes(ctx) {
			if notImplemented(err) {
				sizesOfValues(ctx, db, yield)
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func sizesOfValues(ctx context.Context, db *client.DB, yield func(client.Size, error) bool) {
	for r, err := range db.All(ctx) {
		if !yield(client.Size{Key: r.Key, Bytes: int64(len(r.Value)), Expires: r.Expires}, err) {
			return
		}
	}
}

// note counts a record, and keeps it if it is one of the largest.
func (b *bigScan) note(r client.Size) {
	b.records++
	b.keys += int64(len(r.Key))
	b.value += r.Bytes
	at, _ := slices.BinarySearchFunc(b.found, r, func(one, other client.Size) int {
		return cmp.Or(cmp.Compare(other.Bytes, one.Bytes), strings.Compare(one.Key, other.Key))
	})
	if at == int(*b.most) {
		return
	}
	b.found = slices.Insert(b.found, at, r)
	b.found = b.found[:min(len(b.found), int(*b.most))]
}

// tell prints the largest records, and the sums of all.
func (b *bigScan) tell() error {
	if b.json {
		for _, r := range b.found {
			o := b.object(client.Record{Key: r.Key, Expires: r.Expires}, false, true)
			o["size"] = r.Bytes
			if err := b.printJSON(o); err != nil {
				return err
			}
		}
		return b.printJSON(show.Object{"records": b.records, "key_bytes": b.keys, "value_bytes": b.value})
	}
	for _, r := range b.found {
		fmt.Fprintf(b.out, "%d\t", r.Bytes) // Flush returns the error
		b.print([]byte(r.Key))
		_ = b.out.WriteByte('\n')
	}
	_, err := fmt.Fprintf(b.out, "%d records, keys of %s, values of %s, on average %s\n", b.records, size(float64(b.keys)),
		size(float64(b.value)), size(float64(b.value)/float64(max(1, b.records))))
	return err
}
