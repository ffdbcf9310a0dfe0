package jsonrows

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"

	"gotycoon/client/wire/tsv"
)

// TypeJSON is the media type of the bodies.
const TypeJSON = "application/json"

const (
	// maxMembers is how many members the object may have, and maxName how many bytes the name of a
	// member: each is compared with those before it, and errors name it.
	maxMembers = 256
	maxName    = 4 << 10

	// maxNumber is how many bytes a number with an exponent may have, as it is written and written
	// out: 1e308 would be 309. It is room for all digits of a double near 1, and for 1e30.
	maxNumber = 32
)

// Error says where a body is wrong, and why.
type Error struct {
	Line, Column int // from 1 on; the column counts bytes
	Member       string
	Reason       string
}

// Error returns where and why.
func (e *Error) Error() string {
	in := ""
	if e.Member != "" {
		in = fmt.Sprintf(", in %q", e.Member)
	}
	return fmt.Sprintf("the JSON body is wrong at line %d, column %d%s: %s", e.Line, e.Column, in, e.Reason)
}

// Decode adds the rows of a body to dst. flag reports whether a parameter counts "if present". The
// body is decoded in place and must not be changed while dst is used. dst.Err returns an error if
// there was no memory for all rows.
func Decode(dst *tsv.Rows, body []byte, flag func(name []byte) bool) error {
	d := decoder{scanner: scanner{body: body, line: 1}, dst: dst, flag: flag}
	if err := d.object(d.member); err != nil {
		return err
	}
	if d.skipSpace(); d.at < len(body) {
		return d.fail("nothing may follow the object")
	}
	return nil
}

// decoder reads one body.
type decoder struct {
	scanner
	dst  *tsv.Rows
	flag func(name []byte) bool
	seen [][]byte // names of the members so far
}

// member reads a member of the body.
func (d *decoder) member(name []byte) error {
	if len(name) > maxName {
		return d.fail(fmt.Sprintf("the name of a member has more than %d bytes", maxName))
	}
	d.within = name
	for _, other := range d.seen {
		if bytes.Equal(name, other) {
			return d.fail("the member is there twice")
		}
	}
	if len(d.seen) == maxMembers {
		return d.fail(fmt.Sprintf("more than %d members", maxMembers))
	}
	d.seen = append(d.seen, name)
	first := d.peek()
	switch {
	case len(name) > 0 && name[0] == '_':
		return d.fail(`a name with an underscore in front: give records as "records" or "keys", without the underscore`)
	case string(name) == "records" && first == '{':
		return d.object(func(key []byte) error { return d.record(d.marked(key)) })
	case string(name) == "records" && first == '[':
		return d.array(d.recordObject)
	case string(name) == "keys" && first == '[':
		return d.array(func() error {
			key, err := d.key()
			if err == nil {
				d.dst.Add(key, key[:0])
			}
			return err
		})
	case d.flag(name):
		return d.flagged(name)
	}
	value, there, err := d.value()
	if there {
		d.dst.Add(name, value)
	}
	return err
}

// flagged reads a parameter that counts if it is present.
func (d *decoder) flagged(name []byte) error {
	word, err := d.literal()
	if err != nil {
		return d.fail("must be true or false")
	}
	if word == "true" {
		d.dst.Add(name, []byte(word))
	}
	return nil
}

// record reads the value of a record and adds its row.
func (d *decoder) record(name []byte) error {
	value, there, err := d.value()
	if err == nil && !there {
		err = d.fail("null is no value of a record")
	}
	if err == nil {
		d.dst.Add(name, value)
	}
	return err
}

// recordObject reads {"key": …, "value": …}, in either order.
func (d *decoder) recordObject() error {
	var key, value []byte
	hasValue := false
	err := d.object(func(name []byte) (err error) {
		switch {
		case string(name) == "key" && key == nil:
			key, err = d.key()
		case string(name) == "value" && !hasValue:
			if value, hasValue, err = d.value(); err == nil && !hasValue {
				err = d.fail("null is no value of a record")
			}
		default:
			err = d.fail(`a record is {"key": …, "value": …}`)
		}
		return err
	})
	if err == nil && (key == nil || !hasValue) {
		err = d.fail(`a record is {"key": …, "value": …}`)
	}
	if err == nil {
		d.dst.Add(key, value)
	}
	return err
}

// key reads a key, and returns it with an underscore in front, which takes the place of the quote.
func (d *decoder) key() ([]byte, error) {
	switch d.peek() {
	case '"':
		text, err := d.text()
		return d.marked(text), err
	case '{':
		data, err := d.base64()
		return d.marked(data), err
	}
	return nil, d.fail(`a key is a string or {"base64": …}`)
}

// marked returns a string of the body with an underscore in front: the name of its row.
func (d *decoder) marked(text []byte) []byte {
	if text == nil { // after an error
		return nil
	}
	at := cap(d.body) - cap(text) - 1 // of the quote: text is a part of body
	d.body[at] = '_'
	return d.body[at : at+1+len(text)]
}

// value reads the value of a row. there is false for null.
func (d *decoder) value() (value []byte, there bool, err error) {
	switch c := d.peek(); {
	case c == '"':
		value, err = d.text()
	case c == '{':
		value, err = d.base64()
	case c == '[':
		err = d.fail("no list is expected here")
	case c == '-' || c >= '0' && c <= '9':
		value, err = d.number()
	default:
		var word string
		if word, err = d.literal(); word == "null" {
			return nil, false, err
		}
		value = []byte(word)
	}
	return value, err == nil, err
}

// base64 reads {"base64": "…"}.
func (d *decoder) base64() (data []byte, err error) {
	err = d.object(func(name []byte) (err error) {
		if string(name) != "base64" || data != nil {
			return d.fail(`the only object that is a value is {"base64": "…"}`)
		}
		if d.peek() != '"' {
			return d.fail("base64 must be a string")
		}
		from := d.at
		text, err := d.text()
		if err != nil {
			return err
		}
		enc := base64.StdEncoding
		if len(text)%4 != 0 {
			enc = base64.RawStdEncoding
		}
		n, err := enc.Decode(text, text)
		if err != nil {
			d.at = from
			return d.fail("no Base64 (letters, digits, + and /)")
		}
		data = text[:n]
		return nil
	})
	if err == nil && data == nil {
		err = d.fail(`the only object that is a value is {"base64": "…"}`)
	}
	return data, err
}

// number reads a number and returns its text, an exponent written out. The text that is written out
// is not in the body, so it takes memory, for which the table asks.
func (d *decoder) number() ([]byte, error) {
	from := d.at
	for d.at < len(d.body) && bytes.IndexByte([]byte("+-.0123456789eE"), d.body[d.at]) >= 0 {
		d.at++
	}
	text := d.body[from:d.at:d.at]
	wrong := func(reason string) ([]byte, error) {
		d.at = from
		return nil, d.fail(reason)
	}
	if !IsNumber(text) {
		return wrong("no number")
	}
	if !bytes.ContainsAny(text, "eE") {
		return text, nil
	}
	const long = "the number has more than 32 digits when its exponent is written out: give it as a string"
	if len(text) > maxNumber {
		return wrong(long)
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return wrong("the number is too large")
	}
	if !d.dst.Room(maxNumber) {
		return nil, d.dst.Err()
	}
	text = strconv.AppendFloat(make([]byte, 0, maxNumber), f, 'f', -1, 64)
	if len(text) > maxNumber {
		return wrong(long)
	}
	return text, nil
}
