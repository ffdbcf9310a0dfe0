// Package show is the part of the command line tools that people see and give: columns in plain
// text and in hexadecimal, JSON, input that may be compressed, progress, and colours.
package show

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// Column writes a column, in hexadecimal if asked. An error of w is dropped: w is usually a buffer
// that reports the error again when it is flushed.
func Column(w io.Writer, b []byte, hexadecimal bool) {
	if hexadecimal {
		fmt.Fprintf(w, "% X", b)
		return
	}
	_, _ = w.Write(b)
}

// Columns splits a line of an import at its tabs. Line feeds, carriage returns and NUL bytes are
// dropped. The line is overwritten.
func Columns(line []byte, hexadecimal bool) [][]byte {
	columns := bytes.Split(dropped(line), []byte{'\t'})
	if hexadecimal {
		for i := range columns {
			columns[i] = DecodeHex(string(columns[i]))
		}
	}
	return columns
}

// dropped removes line feeds, carriage returns and NUL bytes from a line, in place.
func dropped(line []byte) []byte {
	out := line[:0]
	for _, b := range line {
		if b != '\n' && b != '\r' && b != 0 {
			out = append(out, b)
		}
	}
	return out
}

// DecodeHex decodes pairs of hexadecimal digits. All other characters are ignored.
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

// JSONHelp is the help text of the option -json.
const JSONHelp = "print JSON, an object per line; what is no UTF-8 is in Base64 under a name that ends in _base64"

// Object is one line of JSON output.
type Object map[string]any

// Bytes adds a column: in hexadecimal if asked, as text if it is valid UTF-8, otherwise in Base64
// under name+"_base64".
func (o Object) Bytes(name string, b []byte, hexadecimal bool) {
	switch {
	case hexadecimal:
		o[name] = fmt.Sprintf("%X", b)
	case utf8.Valid(b):
		o[name] = string(b)
	default:
		o[name+"_base64"] = base64.StdEncoding.EncodeToString(b)
	}
}

// Text adds a column of a report: as a number if it looks like a number.
func (o Object) Text(name, text string) {
	o[name] = text
	if isNumber(text) {
		o[name] = json.Number(text)
	}
}

func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || '0' <= text[0] && text[0] <= '9') && json.Valid([]byte(text))
}

// JSON writes v as a line of JSON.
func JSON(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
