package show

import (
	"bytes"
	"fmt"
	"io"
)

// DecodeHex reads pairs of hexadecimal digits and ignores everything else.
func DecodeHex(text string) []byte {
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

// Column writes a column, in hexadecimal where that is wanted. The error is that of w, which is usually a buffer that says it again.
func Column(w io.Writer, b []byte, hexadecimal bool) {
	if hexadecimal {
		fmt.Fprintf(w, "% X", b)
		return
	}
	_, _ = w.Write(b)
}

// Columns takes a line of an import apart: the line's end, carriage returns and NUL bytes are no part of any column. The line is
// overwritten.
func Columns(line []byte, hexadecimal bool) [][]byte {
	columns := bytes.Split(dropped(line), []byte{'\t'})
	if hexadecimal {
		for i := range columns {
			columns[i] = DecodeHex(string(columns[i]))
		}
	}
	return columns
}

// dropped returns a line without its end and without the bytes that no column has.
func dropped(line []byte) []byte {
	out := line[:0]
	for _, b := range line {
		if b != '\n' && b != '\r' && b != 0 {
			out = append(out, b)
		}
	}
	return out
}
