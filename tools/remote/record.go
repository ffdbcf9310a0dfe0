package remote

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"gotycoon/client"
)

// set stores a record in one of several ways.
func set(ctx context.Context, c *call) error {
	c.withDB().withSignals().withHex()
	f := c.flags
	add := f.Bool("add", false, "only when there is none")
	replace := f.Bool("rep", false, "only when there is one")
	appended := f.Bool("app", false, "behind the value that there is")
	inci := f.Bool("inci", false, "add the value to a whole number and print the sum")
	incd := f.Bool("incd", false, "add the value to a number with a fraction and print the sum")
	xt := c.withExpiry()
	if err := c.parse(2, 2); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	key, value, expires := c.args[0], []byte(c.args[1]), client.XT(*xt)
	switch {
	case *add:
		return c.failed("DB::add", db.Add(ctx, key, value, expires))
	case *replace:
		return c.failed("DB::replace", db.Replace(ctx, key, value, expires))
	case *appended:
		return c.failed("DB::append", db.Append(ctx, key, value, expires))
	case *inci:
		return c.increment(ctx, db, "increment", *xt)
	case *incd:
		return c.increment(ctx, db, "increment_double", *xt)
	}
	return c.failed("DB::set", db.Set(ctx, key, value, expires))
}

// increment prints a sum. The server reads the number, so that what counts as one is decided in one place.
func (c *call) increment(ctx context.Context, db *client.DB, proc string, xt int64) error {
	params := []string{"key", c.args[0], "num", c.args[1]}
	if xt != math.MaxInt64 {
		params = append(params, "xt", strconv.FormatInt(xt, 10))
	}
	rows, err := db.Call(ctx, proc, params...)
	if err != nil {
		return c.failed("DB::"+proc, err)
	}
	_, err = fmt.Fprintf(c.out, "%s\n", rows["num"])
	return err
}

// remove removes a record.
func remove(ctx context.Context, c *call) error {
	if err := c.withDB().withSignals().withHex().parse(1, 1); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	return c.failed("DB::remove", db.Remove(ctx, c.args[0]))
}

// get prints a value.
func get(ctx context.Context, c *call) error {
	c.withDB().withSignals().withHex().withHexOut().withJSON()
	seize := c.flags.Bool("rm", false, "and remove the record")
	expiry := c.flags.Bool("pt", false, "print the expiration time behind it")
	bare := c.flags.Bool("pz", false, "without a line feed behind it")
	if err := c.parse(1, 1); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	read := db.GetRecord
	if *seize {
		read = db.Seize
	}
	r, err := read(ctx, c.args[0])
	if err != nil {
		return c.failed("DB::get", err) // that of seize too, as in the original
	}
	if c.json {
		return c.printJSON(c.object(r, true, true))
	}
	c.print(r.Value)
	if *expiry {
		c.printExpiry(r)
	}
	if !*bare {
		_ = c.out.WriteByte('\n') // Flush returns the error
	}
	return nil
}
