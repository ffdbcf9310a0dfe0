package client

import (
	"context"
	"math"
	"strconv"
	"time"

	"gotycoon/httpapi/tsv"
)

// XT is an expiration time: a number of seconds from now, or, if negative, a Unix time in seconds.
type XT int64

// Never is the expiration time of a record that does not expire.
const Never XT = math.MaxInt64

// In returns the expiration time of a record that lives for d, rounded up to whole seconds. If d is
// 0 or less, the record expires at once.
func In(d time.Duration) XT {
	if d <= 0 {
		return XT(-1)
	}
	return XT((d-1)/time.Second + 1)
}

// At returns the expiration time of a record that expires at t, to the second. The zero time means
// Never.
func At(t time.Time) XT {
	if t.IsZero() {
		return Never
	}
	return XT(-max(1, t.Unix())) // at most -1: 0 and more would be seconds from now
}

// Record is a record that was read.
type Record struct {
	Key     string
	Value   []byte
	Expires time.Time // zero: never
}

// DB is a database of the server. It has no connection of its own, and many goroutines may use it.
type DB struct {
	client  *Client
	name    string
	signals Signals
}

// With returns the same database with signals for each call.
func (db *DB) With(s Signals) *DB {
	c := *db
	c.signals = s
	return &c
}

// Call calls a procedure that has no method here. params are names and values in turn.
func (db *DB) Call(ctx context.Context, proc string, params ...string) (Rows, error) {
	return db.call(ctx, proc, db.rows(params...))
}

func (db *DB) call(ctx context.Context, proc string, rows []tsv.Row) (out Rows, err error) {
	err = db.client.with(ctx, func(cn *conn) error {
		out, err = cn.call(proc, rows)
		return err
	})
	return out, err
}

// rows returns the parameters of a call, after those that every call of the database has.
func (db *DB) rows(params ...string) []tsv.Row {
	rows := make([]tsv.Row, 0, len(params)/2+5)
	if db.name != "" {
		rows = appendRow(rows, "DB", db.name)
	}
	rows = db.signals.append(rows)
	for i := 0; i+1 < len(params); i += 2 {
		rows = appendRow(rows, params[i], params[i+1])
	}
	return rows
}

func appendRow(rows []tsv.Row, name, value string) []tsv.Row {
	return append(rows, tsv.Row{Name: []byte(name), Value: []byte(value)})
}

func (xt XT) param() []string {
	if xt == Never {
		return nil
	}
	return []string{"xt", strconv.FormatInt(int64(xt), 10)}
}

// expires returns the expiration time of a reply.
func (r Rows) expires() time.Time {
	if _, ok := r["xt"]; !ok {
		return time.Time{}
	}
	return time.Unix(r.Int("xt"), 0)
}
