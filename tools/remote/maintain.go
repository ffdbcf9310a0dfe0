package remote

import "context"

// clearRecords removes all records of a database.
func clearRecords(ctx context.Context, c *call) error {
	if err := c.withDB().withSignals().parse(0, 0); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	return c.failed("DB::clear", db.Clear(ctx))
}

// synchronize has a database written to its file, and a command run on it.
func synchronize(ctx context.Context, c *call) error {
	c.withDB().withSignals()
	hard := c.flags.Bool("hard", false, "down to the disk")
	command := c.flags.String("cmd", "", "then run this `command` of the server's -cmd directory with the file's path and a time stamp")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	return c.failed("DB::synchronize", db.Synchronize(ctx, *hard, *command))
}

// vacuum removes expired records.
func vacuum(ctx context.Context, c *call) error {
	step := c.withDB().withSignals().flags.Integer("step", 0, "look at so many records only")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	return c.failed("DB::vacuum", db.Vacuum(ctx, *step))
}
