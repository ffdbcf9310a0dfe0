package remote

import (
	"context"
	"errors"
	"fmt"

	"gotycoon/client"
)

// lister is what list was asked for.
type lister struct {
	*call
	cursor         *client.Cursor
	back, seize    *bool
	values, expiry *bool
	max            *int64
}

// list prints records in the order of the database.
func list(ctx context.Context, c *call) error {
	c.withDB().withSignals().withHex().withHexOut().withJSON()
	l := &lister{call: c}
	l.back = c.flags.Bool("des", false, "from the last record to the first")
	l.max = c.flags.Integer("max", -1, "at most so many records")
	l.seize = c.flags.Bool("rm", false, "and remove them")
	l.values = c.flags.Bool("pv", false, "print values too")
	l.expiry = c.flags.Bool("pt", false, "print expiration times too")
	if err := c.parse(0, 1); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	l.cursor = db.Cursor()
	defer l.cursor.Close()
	err = l.jump(ctx)
	if errors.Is(err, client.ErrNoRecord) {
		return nil
	}
	if err != nil {
		return c.failed("Cursor::jump", err)
	}
	return l.walk(ctx)
}

func (l *lister) jump(ctx context.Context) error {
	switch from := l.args; {
	case len(from) == 0 && *l.back:
		return l.cursor.JumpBack(ctx)
	case len(from) == 0:
		return l.cursor.Jump(ctx)
	case *l.back:
		return l.cursor.JumpBackKey(ctx, from[0])
	default:
		return l.cursor.JumpKey(ctx, from[0])
	}
}

// walk prints records until the end. A record that somebody else has just removed is the next one's turn.
func (l *lister) walk(ctx context.Context) error {
	for n := int64(0); *l.max < 0 || n < *l.max; n++ {
		r, err := l.next(ctx)
		if errors.Is(err, client.ErrNoRecord) {
			return nil
		}
		if err != nil {
			return l.failed("Cursor::get", err)
		}
		if err := l.show(r); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) next(ctx context.Context) (client.Record, error) {
	if *l.seize {
		return l.cursor.Seize(ctx)
	}
	return l.cursor.Get(ctx, true)
}

func (l *lister) show(r client.Record) error {
	if l.json {
		return l.printJSON(l.recordJSON(r))
	}
	l.print([]byte(r.Key))
	if *l.values {
		_ = l.out.WriteByte('\t')
		l.print(r.Value)
	}
	if *l.expiry {
		fmt.Fprintf(l.out, "\t%d", int64(r.XT))
	}
	return l.out.WriteByte('\n')
}
