package timed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/tools/show"
)

// set stores a record in one of several ways.
func set(_ context.Context, c *call) error {
	f := c.withHex().flags
	add := f.Bool("add", false, "only when there is none")
	replace := f.Bool("rep", false, "only when there is one")
	appended := f.Bool("app", false, "behind the value that there is")
	inci := f.Bool("inci", false, "add the value to a whole number and print the sum")
	incd := f.Bool("incd", false, "add the value to a number with a fraction and print the sum")
	xt := c.withExpiry()
	if err := c.parse(3, 3); err != nil {
		return err
	}
	path, key, value, expires := c.args[0], c.data(1), c.data(2), record.XT(*xt)
	switch {
	case *inci:
		return c.increment(key, string(value), expires)
	case *incd:
		return c.incrementDouble(key, string(value), expires)
	}
	d, err := c.open(path, writes)
	if err != nil {
		return err
	}
	switch {
	case *add:
		return c.failed("DB::add", path, d.Add(nil, key, value, expires))
	case *replace:
		return c.failed("DB::replace", path, d.Replace(nil, key, value, expires))
	case *appended:
		return c.failed("DB::append", path, d.Append(nil, key, value, expires))
	}
	return c.failed("DB::set", path, d.Set(nil, key, value, expires))
}

// increment adds to a whole number and prints the sum.
func (c *call) increment(key []byte, text string, xt record.XT) error {
	num, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return usageError("-inci: the value must be a whole number")
	}
	d, err := c.open(c.args[0], writes)
	if err != nil {
		return err
	}
	sum, err := d.Increment(nil, key, num, 0, xt)
	if err != nil {
		return c.failed("DB::increment", c.args[0], err)
	}
	_, err = fmt.Fprintf(c.out, "%d\n", sum)
	return err
}

// incrementDouble adds to a number with a fraction and prints the sum.
func (c *call) incrementDouble(key []byte, text string, xt record.XT) error {
	num, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(num) {
		return usageError("-incd: the value must be a number")
	}
	d, err := c.open(c.args[0], writes)
	if err != nil {
		return err
	}
	sum, err := d.IncrementDouble(nil, key, num, 0, xt)
	if err != nil {
		return c.failed("DB::increment_double", c.args[0], err)
	}
	_, err = fmt.Fprintf(c.out, "%f\n", sum)
	return err
}

// remove removes a record.
func remove(_ context.Context, c *call) error {
	d, err := c.withHex().parseAndOpen(2, 2, writes)
	if err != nil {
		return err
	}
	return c.failed("DB::remove", c.args[0], d.Remove(nil, c.data(1)))
}

// get prints a value.
func get(_ context.Context, c *call) error {
	f := c.withHex().withHexOut().withJSON().flags
	seize := f.Bool("rm", false, "and remove the record")
	expiry := f.Bool("pt", false, "print the expiration time behind it")
	bare := f.Bool("pz", false, "without a line feed behind it")
	if err := c.parse(2, 2); err != nil {
		return err
	}
	d, err := c.open(c.args[0], readsOr(*seize))
	if err != nil {
		return err
	}
	value, xt, err := fetch(d, c.data(1), *seize)
	if err != nil {
		return c.failed("DB::get", c.args[0], err) // also the name for seize, as in the original
	}
	if c.json {
		return show.JSON(c.out, c.object(d, c.data(1), value, xt, true, true))
	}
	c.print(value)
	if *expiry {
		c.printExpiry(d, xt)
	}
	if !*bare {
		_ = c.out.WriteByte('\n') // Flush returns the error
	}
	return nil
}

func fetch(d *db.DB, key []byte, seize bool) (value []byte, xt int64, err error) {
	if seize {
		return d.Seize(nil, nil, key)
	}
	return d.Get(nil, nil, key)
}

// lister is one run of list.
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

// walk prints records up to the end of the database or the limit of -max.
func (l *lister) walk(cursor *db.Cursor) error {
	fetch := func() ([]byte, []byte, int64, error) { return cursor.Get(nil, true) }
	if *l.seize {
		p := new(db.Pending) // Close waits for the removals
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
