package show

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// JSONHelp explains the option -json.
const JSONHelp = "print JSON, an object per line; what is no UTF-8 is in Base64 under a name that ends in _base64"

// Object is one line of output for programs.
type Object map[string]any

// Bytes adds a column: as text where it is text, since JSON knows nothing else, or in hexadecimal.
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

// Text adds a column of a report: a number if it looks like one.
func (o Object) Text(name, text string) {
	o[name] = text
	if isNumber(text) {
		o[name] = json.Number(text)
	}
}

func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || '0' <= text[0] && text[0] <= '9') && json.Valid([]byte(text))
}

// JSON writes a line.
func JSON(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
