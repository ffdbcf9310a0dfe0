package client

import (
	"context"
	"errors"
	"iter"
)

// Cursor is a place in a database. The server keeps the place with a connection, so a Cursor has a
// connection of its own; it belongs to one goroutine. Signals of its database apply to its first
// call only.
type Cursor struct {
	db   *DB
	conn *conn // nil before the first call, and after Close
}

// cursorID is the cursor's number on its connection.
const cursorID = "1"

// Cursor returns a cursor that is on no record. Close it after use.
func (db *DB) Cursor() *Cursor {
	own := *db
	return &Cursor{db: &own}
}

// Close closes the connection. A later call begins with a new cursor, which is on no record.
func (c *Cursor) Close() error {
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn = nil
	return err
}

func (c *Cursor) call(ctx context.Context, proc string, params ...string) (out Rows, err error) {
	rows := c.db.rows(append([]string{"CUR", cursorID}, params...)...)
	c.db.signals = Signals{}
	err = c.during(ctx, func(cn *conn) error {
		out, err = cn.call(proc, rows)
		return err
	})
	return out, err
}

// during runs f on the cursor's connection. The first error of the network closes the connection.
func (c *Cursor) during(ctx context.Context, f func(*conn) error) (err error) {
	ctx, cancel := c.db.client.opts.limit(ctx)
	defer cancel()
	if c.conn == nil {
		if c.conn, err = c.db.client.dial(ctx); err != nil {
			return err
		}
	}
	err = c.conn.during(ctx, f)
	if errors.Is(err, ErrNetwork) {
		_ = c.Close()
	}
	return err
}

func (c *Cursor) do(ctx context.Context, proc string, params ...string) error {
	_, err := c.call(ctx, proc, params...)
	return err
}

// Jump goes to the first record. It returns ErrNoRecord for an empty database.
func (c *Cursor) Jump(ctx context.Context) error { return c.do(ctx, "cur_jump") }

// JumpKey goes to a record. If there is no such record, it goes to the next one of an ordered
// database.
func (c *Cursor) JumpKey(ctx context.Context, key string) error {
	return c.do(ctx, "cur_jump", "key", key)
}

// JumpBack goes to the last record of an ordered database. Afterwards stepping goes backward.
func (c *Cursor) JumpBack(ctx context.Context) error { return c.do(ctx, "cur_jump_back") }

// JumpBackKey goes to a record of an ordered database, or to the one before. Afterwards stepping
// goes backward.
func (c *Cursor) JumpBackKey(ctx context.Context, key string) error {
	return c.do(ctx, "cur_jump_back", "key", key)
}

// Step goes to the next record.
func (c *Cursor) Step(ctx context.Context) error { return c.do(ctx, "cur_step") }

// StepBack goes to the previous record of an ordered database.
func (c *Cursor) StepBack(ctx context.Context) error { return c.do(ctx, "cur_step_back") }

// Get returns the record; with step the cursor then moves on. ErrNoRecord means that there are no
// more records.
func (c *Cursor) Get(ctx context.Context, step bool) (Record, error) {
	out, err := c.call(ctx, "cur_get", stepParam(step)...)
	return out.record(), err
}

// GetKey returns the key of the record; with step the cursor then moves on.
func (c *Cursor) GetKey(ctx context.Context, step bool) (string, error) {
	out, err := c.call(ctx, "cur_get_key", stepParam(step)...)
	return string(out["key"]), err
}

// GetValue returns the value of the record; with step the cursor then moves on.
func (c *Cursor) GetValue(ctx context.Context, step bool) ([]byte, error) {
	out, err := c.call(ctx, "cur_get_value", stepParam(step)...)
	return out["value"], err
}

func stepParam(step bool) []string {
	if step {
		return []string{"step", ""}
	}
	return nil
}

func (r Rows) record() Record {
	return Record{Key: string(r["key"]), Value: r["value"], Expires: r.expires()}
}

// SetValue stores the value of the record; with step the cursor then moves on.
func (c *Cursor) SetValue(ctx context.Context, value []byte, expires Expiry, step bool) error {
	params := append([]string{"value", string(value)}, expires.param()...)
	return c.do(ctx, "cur_set_value", append(params, stepParam(step)...)...)
}

// Remove removes the record and moves on.
func (c *Cursor) Remove(ctx context.Context) error { return c.do(ctx, "cur_remove") }

// Seize returns the record, removes it and moves on.
func (c *Cursor) Seize(ctx context.Context) (Record, error) {
	out, err := c.call(ctx, "cur_seize")
	return out.record(), err
}

// Records iterates over the record under the cursor and all further records in the cursor's
// direction, and closes the cursor in the end. It requests records ahead, so that a distant server
// does not slow it down. An error is yielded last.
func (c *Cursor) Records(ctx context.Context) iter.Seq2[Record, error] {
	return fetch(ctx, c, "cur_get", Rows.record)
}

// Keys is Records for keys only.
func (c *Cursor) Keys(ctx context.Context) iter.Seq2[string, error] {
	return fetch(ctx, c, "cur_get_key", func(r Rows) string { return string(r["key"]) })
}

// All iterates over all records in the order of the database. An error is yielded last.
func (db *DB) All(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		c := db.Cursor()
		defer c.Close()
		err := c.Jump(ctx)
		if errors.Is(err, ErrNoRecord) {
			return
		}
		if err != nil {
			yield(Record{}, err)
			return
		}
		c.Records(ctx)(yield)
	}
}

// maxAhead is how many requests of an iterator may be unanswered.
const maxAhead = 64

// fetch calls a stepping procedure until there are no more records, and yields what take finds in
// the replies. It sends several requests at once: one at first, then twice as many each time, up to
// maxAhead. In the end it closes the cursor, because replies may be left unread.
func fetch[T any](ctx context.Context, c *Cursor, proc string, take func(Rows) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer c.Close()
		for n := 1; ; n = min(2*n, maxAhead) {
			err := c.ask(ctx, proc, n)
			for i := 0; i < n && err == nil; i++ {
				var rows Rows
				if rows, err = c.answer(ctx); err == nil && !yield(take(rows), nil) {
					return
				}
			}
			switch {
			case errors.Is(err, ErrNoRecord):
				return
			case err != nil:
				var none T
				yield(none, err)
				return
			}
		}
	}
}

// ask sends n requests for the stepping procedure.
func (c *Cursor) ask(ctx context.Context, proc string, n int) error {
	rows := c.db.rows("CUR", cursorID, "step", "")
	return c.during(ctx, func(cn *conn) error {
		for range n {
			cn.out = appendCall(cn.out, cn.auth, proc, rows)
		}
		return cn.send()
	})
}

// answer reads the next reply.
func (c *Cursor) answer(ctx context.Context) (rows Rows, err error) {
	err = c.during(ctx, func(cn *conn) error {
		rows, err = cn.reply()
		return err
	})
	return rows, err
}
