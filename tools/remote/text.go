package remote

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gotycoon/client"
)

// decodeHex reads pairs of hexadecimal digits and ignores everything else.
func decodeHex(text string) []byte {
	var digits []byte
	for i := range len(text) {
		if d, ok := hexDigit(text[i]); ok {
			digits = append(digits, d)
		}
	}
	out := make([]byte, 0, len(digits)/2)
	for i := 0; i+1 < len(digits); i += 2 {
		out = append(out, digits[i]<<4|digits[i+1])
	}
	return out
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// print writes a column, in hexadecimal where that is wanted. Flush returns the error of this and other output.
func (c *call) print(b []byte) {
	if c.hexOut {
		fmt.Fprintf(c.out, "% X", b)
		return
	}
	_, _ = c.out.Write(b)
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
