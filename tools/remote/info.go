package remote

import (
	"context"

	"gotycoon/client"
)

// report prints the server's report.
func report(ctx context.Context, c *call) error {
	if err := c.withJSON().parse(0, 0); err != nil {
		return err
	}
	if _, err := c.open(ctx); err != nil {
		return err
	}
	rows, err := c.client.Report(ctx)
	if err != nil {
		return c.failed("DB::report", err)
	}
	return c.printRows(rows, ": ")
}

// inform prints the number and size of the records, or with -st everything about a database.
func inform(ctx context.Context, c *call) error {
	all := c.withDB().withSignals().withJSON().flags.Bool("st", false, "print everything")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	rows, err := db.Status(ctx)
	if err != nil {
		return c.failed("DB::status", err)
	}
	if !*all {
		rows = client.Rows{"count": rows["count"], "size": rows["size"]}
	}
	return c.printRows(rows, ": ")
}
