package client

import (
	"context"
	"iter"
	"time"
)

// Size is how large a record is that a cursor has found.
type Size struct {
	Key     string
	Bytes   int64     // of the value
	Expires time.Time // zero: never
}

// Sizes is Records for sizes: the values stay at the server. The original of the server does not
// know the question; its error has the code NotImplemented.
func (c *Cursor) Sizes(ctx context.Context) iter.Seq2[Size, error] {
	return fetch(ctx, c, "cur_check", func(r Rows) Size {
		return Size{Key: string(r["key"]), Bytes: r.Int("vsiz"), Expires: r.expires()}
	})
}
