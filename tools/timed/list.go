package timed

import (
	"context"
	"errors"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/tools/show"
)

// lister is what list was asked for.
type lister struct {
	*call
	db             *db.DB
	back, seize    *bool
	values, expiry *bool
	max            *int64
}

// list prints records in the order of the database.
func list(_ context.Context, c *call) error {
	f := c.withHex().withHexOut().withJSON().flags
	l := &lister{call: c}
	l.back = f.Bool("des", false, "from the last record to the first")
	l.max = f.Integer("max", -1, "at most so many records")
	l.seize = f.Bool("rm", false, "and remove them")
	l.values = f.Bool("pv", false, "print values too")
	l.expiry = f.Bool("pt", false, "print expiration times too")
	if err := c.parse(1, 2); err != nil {
		return err
	}
	var err error
	if l.db, err = c.open(c.args[0], readsOr(*l.seize)); err != nil {
		return err
	}
	cursor := l.db.NewCursor()
	defer cursor.Close()
	switch err := l.jump(cursor); {
	case errors.Is(err, dberr.ErrNoRecord):
		return nil
	case err != nil:
		return c.failed("Cursor::jump", c.args[0], err)
	}
	return l.walk(cursor)
}

func (l *lister) jump(cursor *db.Cursor) error {
	switch named := len(l.args) > 1; {
	case named && *l.back:
		return cursor.JumpBackKey(nil, l.data(1))
	case named:
		return cursor.JumpKey(nil, l.data(1))
	case *l.back:
		return cursor.JumpBack(nil)
	}
	return cursor.Jump(nil)
}

// walk prints records until the end.
func (l *lister) walk(cursor *db.Cursor) error {
	fetch := func() ([]byte, []byte, int64, error) { return cursor.Get(nil, true) }
	if *l.seize {
		p := new(db.Pending) // closing the database waits
		fetch = func() ([]byte, []byte, int64, error) { return cursor.Seize(p) }
	}
	for n := int64(0); n != *l.max; n++ {
		key, value, xt, err := fetch()
		if errors.Is(err, dberr.ErrNoRecord) {
			return nil
		}
		if err != nil {
			return l.failed("Cursor::get", l.args[0], err)
		}
		if err := l.show(key, value, xt); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) show(key, value []byte, xt int64) error {
	if l.json {
		return show.JSON(l.out, l.object(l.db, key, value, xt, *l.values, *l.expiry))
	}
	l.print(key)
	if *l.values {
		_ = l.out.WriteByte('\t')
		l.print(value)
	}
	if *l.expiry {
		l.printExpiry(l.db, xt)
	}
	return l.out.WriteByte('\n')
}
