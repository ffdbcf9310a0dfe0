package remote

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gotycoon/client"
	"gotycoon/tools/show"
)

// print writes a column, in hexadecimal where that is wanted. Flush returns the error of this and other output.
func (c *call) print(b []byte) {
	show.Column(c.out, b, c.hexOut)
}

// printExpiry writes the column of -pt.
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

// printPair writes key and value.
func (c *call) printPair(key string, value []byte) error {
	if c.json {
		return c.printJSON(c.object(client.Record{Key: key, Value: value}, true, false))
	}
	c.print([]byte(key))
	_ = c.out.WriteByte('\t')
	c.print(value)
	return c.out.WriteByte('\n')
}

// pairs makes a map of keys and values in turn.
func pairs(args []string) map[string][]byte {
	m := make(map[string][]byte, len(args)/2)
	for i := 0; i+1 < len(args); i += 2 {
		m[args[i]] = []byte(args[i+1])
	}
	return m
}
