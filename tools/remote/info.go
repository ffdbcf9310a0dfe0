package remote

import (
	"context"
	"fmt"
	"maps"
	"slices"

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
	return c.printStatus(rows)
}

// inform prints the number and size of the records, or with -st everything about a database.
func inform(ctx context.Context, c *call) error {
	all := c.withDB().withSignals().withJSON().flags.Bool("st", false, "print everything about the database")
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
		maps.DeleteFunc(rows, func(name string, _ []byte) bool { return name != "count" && name != "size" })
	}
	return c.printStatus(rows)
}

// printStatus writes names and values, sorted.
func (c *call) printStatus(rows client.Rows) error {
	if c.json {
		return c.printJSON(status(rows))
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(c.out, "%s: %s\n", name, rows[name]) // Flush returns the error
	}
	return nil
}
