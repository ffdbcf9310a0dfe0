package remote

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
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
	db, err := c.parseAndOpen(ctx, 2, 2)
	if err != nil {
		return err
	}
	key, value, expires := c.args[0], []byte(c.args[1]), expiry(*xt)
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

// increment adds to a record and prints the sum. The number is sent as text: only the server
// decides what counts as a number.
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
	db, err := c.parseAndOpen(ctx, 1, 1)
	if err != nil {
		return err
	}
	read := db.GetRecord
	if *seize {
		read = db.Seize
	}
	r, err := read(ctx, c.args[0])
	if err != nil {
		return c.failed("DB::get", err) // also the name for seize, as in the original
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

// setBulk stores records together.
func setBulk(ctx context.Context, c *call) error {
	binary := c.withBulk()
	xt := c.withExpiry()
	if err := c.parse(0, -1); err != nil {
		return err
	}
	if len(c.args)%2 != 0 {
		return usageError("the last key has no value")
	}
	db, err := c.openFor(ctx, *binary)
	if err != nil {
		return err
	}
	if *binary {
		return c.setBinary(ctx, pairs(c.args), expiry(*xt))
	}
	_, err = db.SetBulk(ctx, pairs(c.args), expiry(*xt), false)
	return c.failed("DB::set_bulk", err)
}

// setBinary stores records over the binary protocol, sorted by key. The original stores them in
// this order too, as its update log shows.
func (c *call) setBinary(ctx context.Context, values map[string][]byte, expires client.Expiry) error {
	var records []client.BinaryRecord
	for _, key := range slices.Sorted(maps.Keys(values)) {
		records = append(records, client.BinaryRecord{DB: c.number(), Key: key, Value: values[key], Expiry: expires})
	}
	n, err := c.client.SetBinary(ctx, records)
	if err == nil && n != len(records) { // the server skips records of a missing database
		return fmt.Errorf("DB::set_bulk_binary failed: %s: 0: success: no error", c.peer())
	}
	return c.failed("DB::set_bulk_binary", err)
}

// withBulk adds the options of all bulk commands. The returned option chooses the binary protocol.
func (c *call) withBulk() *bool {
	return c.withDB().withSignals().withHex().flags.Bool("bin", false, "use the binary protocol; the database must be a number")
}

// removeBulk removes records together.
func removeBulk(ctx context.Context, c *call) error {
	binary := c.withBulk()
	if err := c.parse(0, -1); err != nil {
		return err
	}
	db, err := c.openFor(ctx, *binary)
	if err != nil {
		return err
	}
	if *binary {
		_, err = c.client.RemoveBinary(ctx, c.number(), c.args)
		return c.failed("DB::remove_bulk_binary", err)
	}
	_, err = db.RemoveBulk(ctx, c.args, false)
	return c.failed("DB::remove_bulk", err)
}

// getBulk prints records: sorted by key, or with the binary protocol in the order of the arguments.
func getBulk(ctx context.Context, c *call) error {
	binary := c.withHexOut().withJSON().withBulk()
	if err := c.parse(0, -1); err != nil {
		return err
	}
	db, err := c.openFor(ctx, *binary)
	if err != nil {
		return err
	}
	if *binary {
		return c.getBinary(ctx)
	}
	records, err := db.GetBulk(ctx, c.args, false)
	if err != nil {
		return c.failed("DB::get_bulk", err)
	}
	return c.printRecords(records)
}

func (c *call) getBinary(ctx context.Context) error {
	records, err := c.client.GetBinary(ctx, c.number(), c.args)
	if err != nil {
		return c.failed("DB::get_bulk_binary", err)
	}
	for _, r := range records {
		if err := c.printPair(r.Key, r.Value); err != nil {
			return err
		}
	}
	return nil
}
