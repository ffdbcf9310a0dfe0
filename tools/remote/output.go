package remote

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gotycoon/client"
	"gotycoon/tools/show"
)

// print writes a column, in hexadecimal with -px. An error of the output comes back from Flush.
func (c *call) print(b []byte) {
	show.Column(c.out, b, c.hexOut)
}

// printExpiry writes the column of -pt. A record that does not expire has the largest number.
func (c *call) printExpiry(r client.Record) {
	xt := int64(math.MaxInt64)
	if !r.Expires.IsZero() {
		xt = r.Expires.Unix()
	}
	fmt.Fprintf(c.out, "\t%d", xt)
}

// printRecords writes a line for each record, sorted by key.
func (c *call) printRecords(rows map[string][]byte) error {
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if err := c.printPair(key, rows[key]); err != nil {
			return err
		}
	}
	return nil
}

// printPair writes a line with a key and a value.
func (c *call) printPair(key string, value []byte) error {
	if c.json {
		return c.printJSON(c.object(client.Record{Key: key, Value: value}, true, false))
	}
	c.print([]byte(key))
	_ = c.out.WriteByte('\t')
	c.print(value)
	return c.out.WriteByte('\n')
}

// printOne writes a line with a text, or an object with one column.
func (c *call) printOne(name, text string) error {
	if c.json {
		return c.printJSON(show.Object{name: text})
	}
	_, err := fmt.Fprintln(c.out, text)
	return err
}

// printStatus writes a line for each name and value, sorted by name.
func (c *call) printStatus(rows client.Rows) error {
	if c.json {
		return c.printJSON(status(rows))
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(c.out, "%s: %s\n", name, rows[name]) // Flush returns the error
	}
	return nil
}

// object makes the JSON object of a record. A record that does not expire has no "xt".
func (c *call) object(r client.Record, value, expiry bool) show.Object {
	o := show.Object{}
	o.Bytes("key", []byte(r.Key), c.hexOut)
	if value {
		o.Bytes("value", r.Value, c.hexOut)
	}
	if expiry && !r.Expires.IsZero() {
		o["xt"] = r.Expires.Unix()
	}
	return o
}

// status makes the JSON object of a report. Values that look like numbers become numbers.
func status(rows client.Rows) show.Object {
	o := make(show.Object, len(rows))
	for name, value := range rows {
		o.Text(name, string(value))
	}
	return o
}

// printJSON writes a line of JSON.
func (c *call) printJSON(v any) error { return show.JSON(c.out, v) }
