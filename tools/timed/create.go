package timed

import (
	"context"

	"gotycoon/db"
)

// create creates a database file. One that is there is opened, or with -otr emptied.
func create(_ context.Context, c *call) error {
	truncate := c.truncates()
	if err := c.parse(1, 1); err != nil {
		return err
	}
	_, err := c.openFresh(c.args[0], *truncate)
	return err
}

// truncates adds the option that empties a file.
func (c *call) truncates() *bool {
	return c.flags.Bool("otr", false, "begin with an empty file where there is one already")
}

// openFresh opens a database for writing, and puts an empty file in the place of one that is there when truncate says so. The old file's
// updates are wanted by nobody, those in a log included.
func (c *call) openFresh(expr string, truncate bool) (*db.DB, error) {
	if truncate {
		if err := db.Reset(expr, c.options(creates)); err != nil {
			return nil, c.openFailed(err)
		}
	}
	return c.open(expr, creates)
}
