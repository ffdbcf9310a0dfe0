package client

import (
	"context"
	"errors"
	"iter"
)

// Cursor is a place in a database. It has a connection of its own, where the server keeps the place, and belongs to one
// goroutine.
type Cursor struct {
	db   *DB
	conn *conn // nil before the first call
	err  error // of an iteration
}

// cursorID is the cursor's number on its connection.
const cursorID = "1"

// Cursor returns a cursor that is on no record. Close it after use.
func (db *DB) Cursor() *Cursor { return &Cursor{db: db} }

// Close ends the cursor.
func (c *Cursor) Close() error {
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn = nil
	return err
}

func (c *Cursor) call(ctx context.Context, proc string, params ...string) (out Rows, err error) {
	ctx, cancel := c.db.client.limit(ctx)
	defer cancel()
	if c.conn == nil {
		if c.conn, err = dial(ctx, c.db.client.addr); err != nil {
			return nil, err
		}
	}
	rows := c.db.rows(append([]string{"CUR", cursorID}, params...)...)
	err = c.conn.during(ctx, func(cn *conn) error {
		out, err = cn.call(proc, rows)
		return err
	})
	return out, err
}

func (c *Cursor) do(ctx context.Context, proc string, params ...string) error {
	_, err := c.call(ctx, proc, params...)
	return err
}

// Jump goes to the first record.
func (c *Cursor) Jump(ctx context.Context) error { return c.do(ctx, "cur_jump") }

// JumpKey goes to a record; in an ordered database to the next one where it does not exist.
func (c *Cursor) JumpKey(ctx context.Context, key string) error {
	return c.do(ctx, "cur_jump", "key", key)
}

// JumpBack goes to the last record of an ordered database.
func (c *Cursor) JumpBack(ctx context.Context) error { return c.do(ctx, "cur_jump_back") }

// JumpBackKey goes to a record of an ordered database, or the one before.
func (c *Cursor) JumpBackKey(ctx context.Context, key string) error {
	return c.do(ctx, "cur_jump_back", "key", key)
}

// Step goes to the next record.
func (c *Cursor) Step(ctx context.Context) error { return c.do(ctx, "cur_step") }

// StepBack goes to the record before, in an ordered database.
func (c *Cursor) StepBack(ctx context.Context) error { return c.do(ctx, "cur_step_back") }

// Get returns the record; with step the cursor then moves on.
func (c *Cursor) Get(ctx context.Context, step bool) (Record, error) {
	out, err := c.call(ctx, "cur_get", stepParam(step)...)
	return Record{Key: string(out["key"]), Value: out["value"], XT: out.xt()}, err
}

func stepParam(step bool) []string {
	if step {
		return []string{"step", ""}
	}
	return nil
}

// SetValue stores the value of the record; with step the cursor then moves on.
func (c *Cursor) SetValue(ctx context.Context, value []byte, xt XT, step bool) error {
	params := append([]string{"value", string(value)}, xt.param()...)
	return c.do(ctx, "cur_set_value", append(params, stepParam(step)...)...)
}

// Remove removes the record and moves on.
func (c *Cursor) Remove(ctx context.Context) error { return c.do(ctx, "cur_remove") }

// Seize returns the record, removes it and moves on.
func (c *Cursor) Seize(ctx context.Context) (Record, error) {
	out, err := c.call(ctx, "cur_seize")
	return Record{Key: string(out["key"]), Value: out["value"], XT: out.xt()}, err
}

// All iterates from the first record to the last. Err tells afterwards whether it got there.
func (c *Cursor) All(ctx context.Context) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for c.err = c.Jump(ctx); c.err == nil; {
			var r Record
			if r, c.err = c.Get(ctx, true); c.err == nil && !yield(r.Key, r.Value) {
				return
			}
		}
	}
}

// Err returns the error that ended the last iteration; to have reached the end is none.
func (c *Cursor) Err() error {
	if errors.Is(c.err, ErrNoRecord) {
		return nil
	}
	return c.err
}
