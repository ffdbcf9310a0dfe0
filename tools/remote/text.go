package remote

import (
	"encoding/json"
	"fmt"
	"slices"

	"gotycoon/client"
)

// decodeHex reads pairs of hexadecimal digits and ignores everything else.
func decodeHex(text string) []byte {
	var out []byte
	var digits []byte
	for i := range len(text) {
		if d, ok := hexDigit(text[i]); ok {
			digits = append(digits, d)
		}
	}
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

// print writes a column, in hexadecimal where that is wanted.
func (c *call) print(b []byte) {
	if !c.hexOut {
		_, _ = c.out.Write(b) // Flush returns the error
		return
	}
	for i, x := range b {
		if i > 0 {
			_ = c.out.WriteByte(' ')
		}
		fmt.Fprintf(c.out, "%02X", x)
	}
}

// printRows writes names and values, sorted.
func (c *call) printRows(rows client.Rows, separator string) error {
	if c.json {
		return c.printJSON(stringMap(c, rows))
	}
	names := make([]string, 0, len(rows))
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		c.print([]byte(name))
		_, _ = c.out.WriteString(separator)
		c.print(rows[name])
		_ = c.out.WriteByte('\n')
	}
	return nil
}

// text is a column as JSON shows it.
func (c *call) text(b []byte) string {
	if c.hexOut {
		return fmt.Sprintf("%X", b)
	}
	return string(b)
}

func stringMap(c *call, rows map[string][]byte) map[string]string {
	out := make(map[string]string, len(rows))
	for name, value := range rows {
		out[c.text([]byte(name))] = c.text(value)
	}
	return out
}

// printJSON writes one line of JSON.
func (c *call) printJSON(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "%s\n", line)
	return err
}

// pairs makes a map of keys and values in turn.
func pairs(args []string) map[string][]byte {
	m := make(map[string][]byte, len(args)/2)
	for i := 0; i+1 < len(args); i += 2 {
		m[args[i]] = []byte(args[i+1])
	}
	return m
}
