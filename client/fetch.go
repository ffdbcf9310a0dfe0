package client

import (
	"context"
	"errors"
	"iter"
)

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
