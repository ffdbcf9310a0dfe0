// Package tsv holds the tables that remote procedure calls take and give: names with values,
// written as tab-separated rows, the columns plain or encoded as Base64, quoted-printable or
// percent escapes.
//
// A table and its reading are in rows.go, its writing is in write.go. Order is a matter of sort.go,
// encoded columns are decoded in columns.go.
//
// Server and client share the package. It knows no procedure and no connection.
package tsv

import (
	"bytes"
	"iter"
	"slices"
	"unsafe"
)

// Row is a name with its value. Inside Rows both are slices of the caller's buffers.
type Row struct {
	Name, Value []byte
}

// Rows is a small map from names to values that keeps the order of Add. A later value of a name
// hides the earlier ones. The zero value is empty and ready for use. Rows keeps the slices it is
// given and copies nothing.
//
// A request of 60 MB may have twenty million rows. The rows are kept in parts, because Go cannot be
// stopped while it clears memory for pointers: for a table in one piece all other goroutines would
// wait for a second.
type Rows struct {
	// Memory is asked before the table grows: a row of two bytes in a body takes 48 in the table.
	// nil: the table may grow as it likes.
	Memory Memory

	full [][]Row // parts with partRows rows each
	list []Row   // the rows behind these parts
	held int     // bytes that Memory has given
	err  error   // of Memory: no more rows are added
}

// Memory is where a table takes its memory from.
type Memory interface {
	Hold(bytes int) error // called before the memory is used; after an error it is not
	LetGo(bytes int)
}

const (
	rowSize  = int(unsafe.Sizeof(Row{}))
	fewRows  = 16
	freeRows = 64 // a shorter table takes no memory to speak of
	partRows = 4 << 10
)

// Reset empties r and keeps its memory, unless it has grown to more than limit rows.
func (r *Rows) Reset(limit int) {
	r.held, r.err = 0, nil
	if cap(r.list) > limit || r.full != nil {
		r.list, r.full = nil, nil
		return
	}
	clear(r.list)
	r.list = r.list[:0]
}

// Add appends one row, unless there is no memory for it: see Err.
func (r *Rows) Add(name, value []byte) {
	if len(r.list) < cap(r.list) || r.grow() {
		r.list = append(r.list, Row{name, value})
	}
}

// grow makes room for more rows, and reports whether there is memory for them.
func (r *Rows) grow() bool {
	room := min(max(fewRows, 2*cap(r.list)), partRows)
	if r.Memory != nil && room > freeRows {
		if r.err == nil {
			r.err = r.Memory.Hold(room * rowSize)
		}
		if r.err != nil {
			return false
		}
		r.held += room * rowSize
	}
	if len(r.list) == partRows {
		r.full = append(r.full, r.list)
		r.list = make([]Row, 0, room)
		return true
	}
	r.list = append(make([]Row, 0, room), r.list...)
	if r.Memory != nil && room > freeRows {
		r.Memory.LetGo(r.held - room*rowSize)
		r.held = room * rowSize
	}
	return true
}

// Room takes memory for bytes of a row that are not in the caller's buffers, and reports whether
// there is some: see Err.
func (r *Rows) Room(bytes int) bool {
	if r.Memory != nil && r.err == nil {
		r.err = r.Memory.Hold(bytes)
	}
	return r.err == nil
}

// Err returns why rows were not added: the error of Memory.
func (r *Rows) Err() error { return r.err }

// Len returns the number of rows, hidden ones included.
func (r *Rows) Len() int { return len(r.full)*partRows + len(r.list) }

// All returns the rows. They must not change meanwhile.
func (r *Rows) All() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for part := range r.parts() {
			for _, row := range part {
				if !yield(row) {
					return
				}
			}
		}
	}
}

// parts returns the rows in parts.
func (r *Rows) parts() iter.Seq[[]Row] {
	return func(yield func([]Row) bool) {
		for _, part := range r.full {
			if !yield(part) {
				return
			}
		}
		yield(r.list)
	}
}

// Get returns the value of name, and whether there is one.
func (r *Rows) Get(name string) ([]byte, bool) {
	if value, ok := lastOf(r.list, name); ok {
		return value, ok
	}
	for _, part := range slices.Backward(r.full) {
		if value, ok := lastOf(part, name); ok {
			return value, ok
		}
	}
	return nil, false
}

func lastOf(list []Row, name string) ([]byte, bool) {
	for i := len(list) - 1; i >= 0; i-- {
		if string(list[i].Name) == name {
			return list[i].Value, true
		}
	}
	return nil, false
}

// Has reports whether there is a row called name.
func (r *Rows) Has(name string) bool {
	_, ok := r.Get(name)
	return ok
}

// The media types of the bodies that carry a table. Anything may follow them in the header.
const (
	TypeTSV  = "text/tab-separated-values"
	TypeForm = "application/x-www-form-urlencoded"
)

// Decode adds the table in body to dst. contentType is the header of that name: it says whether
// body is a table, a form or something else, which adds nothing, and how the columns are encoded.
// An encoding applies to all rows of dst, those from a query string too: the original does so.
//
// Body is decoded in place and must not be changed while dst is used. dst.Err returns an error if
// there was no memory for all rows.
func Decode[T string | []byte](dst *Rows, body []byte, contentType T) {
	switch {
	case hasPrefixFold(contentType, TypeTSV):
		dst.parse(body)
		if e := encodingOf(contentType, len(TypeTSV)); e != Raw {
			dst.decodeColumns(e)
		}
	case hasPrefixFold(contentType, TypeForm):
		DecodeForm(dst, untilNUL(body))
	}
}

// parse adds the rows of a table as they are. Rows without a tab are ignored.
func (r *Rows) parse(body []byte) {
	for len(body) > 0 && r.err == nil {
		line := body
		if end := bytes.IndexByte(body, '\n'); end >= 0 {
			line, body = body[:end], body[end+1:]
			if end > 0 && line[end-1] == '\r' {
				line = line[:end-1]
			}
		} else {
			body = nil
		}
		if tab := bytes.IndexByte(line, '\t'); tab >= 0 {
			r.Add(line[:tab], line[tab+1:])
		}
	}
}

// hasPrefixFold reports whether s begins with prefix, which is in lower case, in any case.
func hasPrefixFold[T string | []byte](s T, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != prefix[i] {
			return false
		}
	}
	return true
}

// encodingOf finds the colenc attribute behind the media type.
func encodingOf[T string | []byte](contentType T, attributes int) Encoding {
	const name = "colenc="
	for i := attributes; i < len(contentType); {
		if isSeparator(contentType[i]) {
			i++
			continue
		}
		if hasPrefixFold(contentType[i:], name) {
			return encodingLetter(contentType[i+len(name):])
		}
		for i < len(contentType) && !isSeparator(contentType[i]) {
			i++
		}
	}
	return Raw
}

func isSeparator(c byte) bool { return c == ';' || c == ' ' || c == '\t' }

func encodingLetter[T string | []byte](s T) Encoding {
	i := 0
	if len(s) > 0 && s[0] == '"' {
		i = 1
	}
	if i >= len(s) {
		return Raw
	}
	switch s[i] {
	case 'B', 'b':
		return Base64
	case 'Q', 'q':
		return Quoted
	case 'U', 'u':
		return URL
	}
	return Raw
}

// DecodeForm adds the fields of a form or a query string to dst and decodes them in place. Fields
// are separated by '&' or ';'; a field without '=' has an empty value.
func DecodeForm(dst *Rows, text []byte) {
	for len(text) > 0 && dst.err == nil {
		field := text
		if end := bytes.IndexAny(text, "&;"); end >= 0 {
			field, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		field = trimLeft(field)
		if len(field) == 0 {
			continue
		}
		name, value, _ := bytes.Cut(field, []byte("="))
		dst.Add(DecodeURL(name), DecodeURL(value))
	}
}

// trimLeft removes leading blanks and control bytes.
func trimLeft(s []byte) []byte {
	for len(s) > 0 && s[0] > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	return s
}

// DecodeURL decodes percent escapes and plus signs in place, by the lenient rules of the original:
// a character that is no digit is passed over, and an escape that the end cuts off is dropped, as
// are blanks and control bytes. Bytes from 0x80 on are kept. The original drops them, which turns
// different names into equal ones.
func DecodeURL(text []byte) []byte {
	text = untilNUL(text)
	r := plainPrefix(text)
	if r == len(text) {
		return text
	}
	w := r
	for r < len(text) {
		c := text[r]
		switch {
		case c == '%':
			if r+2 >= len(text) {
				return text[:w]
			}
			text[w] = hexPair(text[r+1], text[r+2])
			w++
			r += 2
		case c == '+':
			text[w] = ' '
			w++
		case c > ' ' && c != 0x7f:
			text[w] = c
			w++
		}
		r++
	}
	return text[:w]
}

// plainPrefix returns the length of the part of text that DecodeURL leaves alone.
func plainPrefix(text []byte) int {
	for i, c := range text {
		if c == '%' || c == '+' || c <= ' ' || c == 0x7f {
			return i
		}
	}
	return len(text)
}

// untilNUL returns text up to its first NUL: the decoders of the original end there.
func untilNUL(text []byte) []byte {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return text[:i]
	}
	return text
}
