package remote

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gotycoon/client"
)

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
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	if *binary {
		return c.setBinary(ctx, pairs(c.args), client.XT(*xt))
	}
	_, err = db.SetBulk(ctx, pairs(c.args), client.XT(*xt), false)
	return c.failed("DB::set_bulk", err)
}

// setBinary stores records sorted by key, which is what the log of the original shows.
func (c *call) setBinary(ctx context.Context, values map[string][]byte, xt client.XT) error {
	var records []client.BinaryRecord
	for _, key := range slices.Sorted(maps.Keys(values)) {
		records = append(records, client.BinaryRecord{DB: c.number(), Key: key, Value: values[key], XT: xt})
	}
	n, err := c.client.SetBinary(ctx, records)
	if err == nil && n != len(records) { // the binary protocol passes over a database that does not exist
		return fmt.Errorf("DB::set_bulk_binary failed: %s: 0: success: no error", c.peer())
	}
	return c.failed("DB::set_bulk_binary", err)
}

// withBulk adds the options of all bulk commands, and returns the one that chooses the binary protocol.
func (c *call) withBulk() *bool {
	return c.withDB().withSignals().withHex().flags.Bool("bin", false, "use the binary protocol; the database must be a number")
}

// removeBulk removes records together.
func removeBulk(ctx context.Context, c *call) error {
	binary := c.withBulk()
	if err := c.parse(0, -1); err != nil {
		return err
	}
	db, err := c.open(ctx)
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

// getBulk prints records together: sorted, or over the binary protocol in the order of the arguments.
func getBulk(ctx context.Context, c *call) error {
	binary := c.withHexOut().withJSON().withBulk()
	if err := c.parse(0, -1); err != nil {
		return err
	}
	db, err := c.open(ctx)
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
