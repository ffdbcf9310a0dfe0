package remote

import (
	"context"
	"errors"
	"iter"

	"gotycoon/client"
)

// lister is one run of list.
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
	db, err := c.parseAndOpen(ctx, 0, 1)
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

// walk prints records up to the end of the database or the limit of -max.
func (l *lister) walk(ctx context.Context) error {
	n := int64(0)
	if *l.max == 0 {
		return nil
	}
	for r, err := range l.records(ctx) {
		if err != nil {
			return l.failed("Cursor::get", err)
		}
		if err := l.show(r); err != nil {
			return err
		}
		if n++; n == *l.max {
			break
		}
	}
	return nil
}

// records returns the records behind the cursor. It fetches only the parts of a record that will be
// printed.
func (l *lister) records(ctx context.Context) iter.Seq2[client.Record, error] {
	switch {
	case *l.seize:
		return l.seized(ctx)
	case *l.values || *l.expiry:
		return l.cursor.Records(ctx)
	}
	return func(yield func(client.Record, error) bool) {
		for key, err := range l.cursor.Keys(ctx) {
			if !yield(client.Record{Key: key}, err) {
				return
			}
		}
	}
}

// seized removes the records behind the cursor and returns them. It removes a record only when the
// caller asks for the next one, so with -max no record is removed that is not printed.
func (l *lister) seized(ctx context.Context) iter.Seq2[client.Record, error] {
	return func(yield func(client.Record, error) bool) {
		for {
			r, err := l.cursor.Seize(ctx)
			if errors.Is(err, client.ErrNoRecord) || !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func (l *lister) show(r client.Record) error {
	if l.json {
		return l.printJSON(l.object(r, *l.values, *l.expiry))
	}
	l.print([]byte(r.Key))
	if *l.values {
		_ = l.out.WriteByte('\t')
		l.print(r.Value)
	}
	if *l.expiry {
		l.printExpiry(r)
	}
	return l.out.WriteByte('\n')
}

// matchPrefix prints the keys that begin with the arguments.
func matchPrefix(ctx context.Context, c *call) error {
	return match(ctx, c, "DB::match_prefix", (*client.DB).MatchPrefix)
}

// matchRegex prints the keys that match the arguments.
func matchRegex(ctx context.Context, c *call) error {
	return match(ctx, c, "DB::match_regex", (*client.DB).MatchRegex)
}

func match(ctx context.Context, c *call, name string, find func(*client.DB, context.Context, string, int64) ([]string, error)) error {
	c.withDB().withSignals().withHex().withJSON()
	c.flags.Bool("px", false, "accepted, without an effect, as in the original")
	limit := c.flags.Integer("limit", -1, "at most so many keys per argument")
	db, err := c.parseAndOpen(ctx, 0, -1)
	if err != nil {
		return err
	}
	for _, arg := range c.args {
		keys, err := find(db, ctx, arg, *limit)
		if err != nil {
			return c.failed(name, err)
		}
		if err := c.printKeys(keys); err != nil {
			return err
		}
		db = db.With(client.Signals{}) // signals are for the first call only
	}
	return nil
}

func (c *call) printKeys(keys []string) error {
	for _, key := range keys {
		if c.json {
			if err := c.printJSON(c.object(client.Record{Key: key}, false, false)); err != nil {
				return err
			}
			continue
		}
		_, _ = c.out.WriteString(key)
		if err := c.out.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}
