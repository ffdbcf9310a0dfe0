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
	key, value, expires := c.args[0], c.args[1], client.XT(*xt)
	switch {
	case *add:
		return c.failed("DB::add", db.Add(ctx, key, []byte(value), expires))
	case *replace:
		return c.failed("DB::replace", db.Replace(ctx, key, []byte(value), expires))
	case *appended:
		return c.failed("DB::append", db.Append(ctx, key, []byte(value), expires))
	case *inci:
		n, _ := strconv.ParseInt(value, 10, 64) // no number is 0, as on the server
		sum, err := db.Increment(ctx, key, n, expires)
		return c.sum("DB::increment", strconv.FormatInt(sum, 10), err)
	case *incd:
		n, _ := strconv.ParseFloat(value, 64) // likewise
		sum, err := db.IncrementDouble(ctx, key, n, expires)
		return c.sum("DB::increment_double", fmt.Sprintf("%f", sum), err)
	}
	return c.failed("DB::set", db.Set(ctx, key, []byte(value), expires))
}

func (c *call) sum(name, text string, err error) error {
	if err == nil {
		fmt.Fprintln(c.out, text)
	}
	return c.failed(name, err)
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
	name, read := "DB::get", db.GetRecord
	if *seize {
		read = db.Seize
	}
	r, err := read(ctx, c.args[0])
	if err != nil {
		return c.failed(name, err)
	}
	if c.json {
		return c.printJSON(c.recordJSON(r))
	}
	c.print(r.Value)
	if *expiry {
		fmt.Fprintf(c.out, "\t%d", int64(r.XT))
	}
	if !*bare {
		fmt.Fprintln(c.out)
	}
	return nil
}

// recordJSON is a record for programs; xt is left out where the record does not expire.
func (c *call) recordJSON(r client.Record) any {
	out := struct {
		Key   string `json:"key"`
		Value string `json:"value"`
		XT    int64  `json:"xt,omitempty"`
	}{c.text([]byte(r.Key)), c.text(r.Value), int64(r.XT)}
	if r.XT == math.MaxInt64 {
		out.XT = 0
	}
	return out
}
