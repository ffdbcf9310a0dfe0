package timed

import (
	"fmt"
	"math"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/tools/show"
)

// print writes a column. Flush returns the error of this and other output.
func (c *call) print(b []byte) { show.Column(c.out, b, c.hexOut) }

// printExpiry writes the column of -pt: what is stored, and for a database that has no expiration times the largest number.
func (c *call) printExpiry(d *db.DB, xt int64) {
	if d.Persistent() {
		xt = math.MaxInt64
	}
	fmt.Fprintf(c.out, "\t%d", xt)
}

// object is a record for programs. Its expiration time is there only where it has one.
func (c *call) object(d *db.DB, key, value []byte, xt int64, withValue, withExpiry bool) show.Object {
	o := show.Object{}
	o.Bytes("key", key, c.hexOut)
	if withValue {
		o.Bytes("value", value, c.hexOut)
	}
	if withExpiry && xt != record.MaxXT && !d.Persistent() {
		o["xt"] = xt
	}
	return o
}

// steps is the progress of a command that goes through many records.
func (c *call) steps(items string, size int64) show.Progress {
	const every = 1000
	return show.NewProgress(c.out, c.stdout, c.stderr, show.ProgressOptions{Items: items, Size: size, Every: every, Ending: " (end)"})
}
