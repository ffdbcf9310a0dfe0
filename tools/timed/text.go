package timed

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/tools/show"
)

// input opens the file of the i-th argument, or standard input if the argument is missing. size is
// -1 where it is not known.
func (c *call) input(i int) (in io.ReadCloser, size int64, err error) {
	if i >= len(c.args) {
		return io.NopCloser(c.stdin), -1, nil
	}
	return show.OpenInput(c.args[i])
}

// inputName names the input in messages.
func (c *call) inputName(i int) string {
	if i >= len(c.args) {
		return "standard input"
	}
	return c.args[i]
}

// print writes a column, in hexadecimal with -px. An error of the output comes back from Flush.
func (c *call) print(b []byte) { show.Column(c.out, b, c.hexOut) }

// printExpiry writes the column of -pt: the stored number. A database without expiration times has
// the largest number.
func (c *call) printExpiry(d *db.DB, xt int64) {
	if d.Info().Persistent {
		xt = math.MaxInt64
	}
	fmt.Fprintf(c.out, "\t%d", xt)
}

// object makes the JSON object of a record. A record that does not expire has no "xt".
func (c *call) object(d *db.DB, key, value []byte, xt int64, withValue, withExpiry bool) show.Object {
	o := show.Object{}
	o.Bytes("key", key, c.hexOut)
	if withValue {
		o.Bytes("value", value, c.hexOut)
	}
	if withExpiry && xt != record.MaxXT && !d.Info().Persistent {
		o["xt"] = xt
	}
	return o
}

// printRows prints a report, sorted by name.
func (c *call) printRows(rows map[string]string) error {
	o := show.Object{}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if o.Text(name, rows[name]); !c.json {
			fmt.Fprintf(c.out, "%s: %s\n", name, rows[name]) // Flush returns the error
		}
	}
	if c.json {
		return show.JSON(c.out, o)
	}
	return nil
}

// steps returns the progress display of a command that goes through many records.
func (c *call) steps(size int64) show.Progress {
	const every = 1000
	return show.NewProgress(c.out, c.stdout, c.stderr, show.ProgressOptions{Items: "records", Size: size, Every: every, Ending: " (end)"})
}

// quietProgress returns a function that shows progress to a person, and shows nothing in a script.
// A call with 0 items ends the display.
func (c *call) quietProgress(items string, size int64) func(items, bytes int) {
	if !show.IsTerminal(c.stdout) || !show.IsTerminal(c.stderr) {
		return func(int, int) {}
	}
	p := show.NewProgress(c.out, c.stdout, c.stderr, show.ProgressOptions{Items: items, Size: size})
	return func(items, bytes int) {
		if items == 0 {
			p.End()
			return
		}
		p.Done(items, bytes)
	}
}
