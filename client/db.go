package client

import (
	"context"
	"strconv"
	"time"

	"gotycoon/client/wire/tsv"
)

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
	err = db.client.with(ctx, db.repetition(proc), func(cn *conn) error {
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

// expires returns the expiration time of a reply.
func (r Rows) expires() time.Time {
	if _, ok := r["xt"]; !ok {
		return time.Time{}
	}
	return time.Unix(r.Int("xt"), 0)
}

// Signals let a call wait for a named signal before it is carried out, and send one afterwards.
type Signals struct {
	Wait      string        // name of the signal to wait for
	Waits     bool          // wait, even if the name is empty
	WaitTime  time.Duration // limit of the wait, then ErrTimeout; 0 means the server's 30 s
	Send      string        // name of the signal to send
	Sends     bool          // send, even if the name is empty
	Broadcast bool          // wake all waiting calls, not only one
}

func (s Signals) append(rows []tsv.Row) []tsv.Row {
	if s.Waits || s.Wait != "" {
		rows = appendRow(rows, "WAIT", s.Wait)
		if s.WaitTime > 0 {
			rows = appendRow(rows, "WAITTIME", formatFloat(s.WaitTime.Seconds()))
		}
	}
	if s.Sends || s.Send != "" {
		rows = appendRow(rows, "SIGNAL", s.Send)
		if s.Broadcast {
			rows = appendRow(rows, "SIGNALBROAD", "")
		}
	}
	return rows
}

// Wait waits until somebody sends the signal, at most for limit, and returns ErrTimeout then. A
// limit of 0 means 30 s. Signals are not remembered: one that was sent before Wait does not count.
func (c *Client) Wait(ctx context.Context, name string, limit time.Duration) error {
	_, err := c.DB("").With(Signals{Wait: name, Waits: true, WaitTime: limit}).Call(ctx, "void")
	return err
}

// Signal wakes one call that waits for the signal, or with all every such call. It returns how many
// calls were waiting.
func (c *Client) Signal(ctx context.Context, name string, all bool) (waiting int, err error) {
	out, err := c.DB("").With(Signals{Send: name, Sends: true, Broadcast: all}).Call(ctx, "void")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(out["SIGNALED"]))
}
