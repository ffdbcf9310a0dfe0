package remote

import (
	"context"
	"fmt"

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
		return errUsage
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	if !*binary {
		_, err := db.SetBulk(ctx, pairs(c.args), client.XT(*xt), false)
		return c.failed("DB::set_bulk", err)
	}
	var records []client.BinaryRecord
	for i := 0; i < len(c.args); i += 2 {
		records = append(records, client.BinaryRecord{DB: c.number(), Key: c.args[i], Value: []byte(c.args[i+1]), XT: client.XT(*xt)})
	}
	n, err := c.client.SetBinary(ctx, records, false)
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
		_, err = c.client.RemoveBinary(ctx, c.number(), c.args, false)
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
	return c.printRows(records, "\t")
}

func (c *call) getBinary(ctx context.Context) error {
	records, err := c.client.GetBinary(ctx, c.number(), c.args)
	if err != nil {
		return c.failed("DB::get_bulk_binary", err)
	}
	for _, r := range records {
		if err := c.printRows(client.Rows{r.Key: r.Value}, "\t"); err != nil {
			return err
		}
	}
	return nil
}
