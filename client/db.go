package client

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"gotycoon/httpapi/tsv"
)

// XT is when a record expires: seconds from now, or where negative the absolute time in seconds since 1970.
type XT int64

// Never is the expiration time of a record that stays.
const Never XT = math.MaxInt64

// In returns the expiration time of a record that lives for d, to the second.
func In(d time.Duration) XT { return XT(d / time.Second) }

// At returns the expiration time of a record that lives until t.
func At(t time.Time) XT { return XT(-t.Unix()) }

// Signals let a call wait for a named condition before it is done, and tell waiting calls afterwards.
type Signals struct {
	Wait      string        // name to wait for
	Waits     bool          // wait, also where the name is empty
	WaitTime  time.Duration // how long; 0 means the server's default of 30 s
	Send      string        // name to signal
	Sends     bool          // signal, also where the name is empty
	Broadcast bool          // wake all waiting calls, not one
}

// DB is a database of the server. It holds nothing and may be used by many goroutines.
type DB struct {
	client  *Client
	name    string
	signals Signals
}

// With returns the database with signals for each call.
func (db *DB) With(s Signals) *DB {
	c := *db
	c.signals = s
	return &c
}

// Call calls a procedure for the database. params are names and values in turn.
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

// rows are the parameters of a call with those that every call of the database has.
func (db *DB) rows(params ...string) []tsv.Row {
	rows := make([]tsv.Row, 0, len(params)/2+5)
	add := func(name, value string) {
		rows = append(rows, tsv.Row{Name: []byte(name), Value: []byte(value)})
	}
	if db.name != "" {
		add("DB", db.name)
	}
	if s := db.signals; s.Waits || s.Wait != "" {
		add("WAIT", s.Wait)
		if s.WaitTime > 0 {
			add("WAITTIME", strconv.FormatFloat(s.WaitTime.Seconds(), 'f', -1, 64))
		}
	}
	if s := db.signals; s.Sends || s.Send != "" {
		add("SIGNAL", s.Send)
		if s.Broadcast {
			add("SIGNALBROAD", "")
		}
	}
	for i := 0; i+1 < len(params); i += 2 {
		add(params[i], params[i+1])
	}
	return rows
}

// store calls a procedure that takes a key, a value and an expiration time.
func (db *DB) store(ctx context.Context, proc, key string, value []byte, xt XT) error {
	_, err := db.Call(ctx, proc, append([]string{"key", key, "value", string(value)}, xt.param()...)...)
	return err
}

func (xt XT) param() []string {
	if xt == Never {
		return nil
	}
	return []string{"xt", strconv.FormatInt(int64(xt), 10)}
}

// Set stores a record, new or not.
func (db *DB) Set(ctx context.Context, key string, value []byte, xt XT) error {
	return db.store(ctx, "set", key, value, xt)
}

// Add stores a new record. An existing one is ErrDuplicate.
func (db *DB) Add(ctx context.Context, key string, value []byte, xt XT) error {
	return db.store(ctx, "add", key, value, xt)
}

// Replace stores the value of an existing record. A missing one is ErrNoRecord.
func (db *DB) Replace(ctx context.Context, key string, value []byte, xt XT) error {
	return db.store(ctx, "replace", key, value, xt)
}

// Append puts value behind the value of a record, or stores a new one.
func (db *DB) Append(ctx context.Context, key string, value []byte, xt XT) error {
	return db.store(ctx, "append", key, value, xt)
}

// Increment adds n to a number and returns the sum. A missing record counts as 0.
func (db *DB) Increment(ctx context.Context, key string, n int64, xt XT) (int64, error) {
	out, err := db.Call(ctx, "increment", append([]string{"key", key, "num", strconv.FormatInt(n, 10)}, xt.param()...)...)
	return out.Int("num"), err
}

// IncrementDouble adds n to a number with a fraction and returns the sum. A missing record counts as 0.
func (db *DB) IncrementDouble(ctx context.Context, key string, n float64, xt XT) (float64, error) {
	num := strconv.FormatFloat(n, 'f', -1, 64)
	out, err := db.Call(ctx, "increment_double", append([]string{"key", key, "num", num}, xt.param()...)...)
	if err != nil {
		return 0, err
	}
	sum, err := strconv.ParseFloat(string(out["num"]), 64)
	if err != nil {
		return 0, networkError(err)
	}
	return sum, nil
}

// CAS replaces the value oval by nval. A nil oval expects no record, a nil nval removes it. Any other state is ErrConflict.
func (db *DB) CAS(ctx context.Context, key string, oval, nval []byte, xt XT) error {
	params := []string{"key", key}
	if oval != nil {
		params = append(params, "oval", string(oval))
	}
	if nval != nil {
		params = append(params, "nval", string(nval))
	}
	_, err := db.Call(ctx, "cas", append(params, xt.param()...)...)
	return err
}

// Remove removes a record. A missing one is ErrNoRecord.
func (db *DB) Remove(ctx context.Context, key string) error {
	_, err := db.Call(ctx, "remove", "key", key)
	return err
}

// Get returns the value of a record. A missing one is ErrNoRecord.
func (db *DB) Get(ctx context.Context, key string) ([]byte, error) {
	r, err := db.GetRecord(ctx, key)
	return r.Value, err
}

// Record is a record with its expiration time in seconds since 1970, Never where it has none.
type Record struct {
	Key   string
	Value []byte
	XT    XT
}

// GetRecord returns a record with its expiration time.
func (db *DB) GetRecord(ctx context.Context, key string) (Record, error) {
	return db.record(ctx, "get", key)
}

// Seize returns a record and removes it.
func (db *DB) Seize(ctx context.Context, key string) (Record, error) {
	return db.record(ctx, "seize", key)
}

func (db *DB) record(ctx context.Context, proc, key string) (Record, error) {
	out, err := db.Call(ctx, proc, "key", key)
	return Record{Key: key, Value: out["value"], XT: out.xt()}, err
}

// xt returns the absolute expiration time of a reply.
func (r Rows) xt() XT {
	if _, ok := r["xt"]; !ok {
		return Never
	}
	return XT(r.Int("xt"))
}

// Check returns the size of a value and the expiration time.
func (db *DB) Check(ctx context.Context, key string) (size int64, xt XT, err error) {
	out, err := db.Call(ctx, "check", "key", key)
	return out.Int("vsiz"), out.xt(), err
}

// Exists tells whether there is a record.
func (db *DB) Exists(ctx context.Context, key string) (bool, error) {
	_, _, err := db.Check(ctx, key)
	if errors.Is(err, ErrNoRecord) {
		return false, nil
	}
	return err == nil, err
}
