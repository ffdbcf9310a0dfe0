package tsv

import (
	"bytes"
	"encoding/binary"
)

// Encoding is how the columns of a table are written.
type Encoding byte

// The encodings. Quoted is only ever read, never chosen for writing.
const (
	Raw    Encoding = 0
	Base64 Encoding = 'B'
	Quoted Encoding = 'Q'
	URL    Encoding = 'U'
)

// The media types of the bodies that carry a table. Anything may follow them in the header.
const (
	TypeTSV  = "text/tab-separated-values"
	TypeForm = "application/x-www-form-urlencoded"
)

// columnLimit is how much of a column Choose looks at; longer columns always count as binary.
const columnLimit = 255

// ContentType returns the header value that announces a table in encoding e.
func (e Encoding) ContentType() string {
	switch e {
	case Base64:
		return TypeTSV + "; colenc=B"
	case Quoted:
		return TypeTSV + "; colenc=Q"
	case URL:
		return TypeTSV + "; colenc=U"
	}
	return TypeTSV
}

// Choose returns the encoding in which the original writes the table: raw if every column is short
// and free of control bytes, else Base64 or URL. It takes the smaller one by an estimate from the
// first 255 bytes of each column.
func (r *Rows) Choose() Encoding {
	if !r.anyBinary() {
		return Raw
	}
	base64, url := 0, 0
	for row := range r.All() {
		for _, col := range [...][]byte{row.Name, row.Value} {
			col = col[:min(len(col), columnLimit)]
			base64 += len(col)*6/4 + 3
			url += estimateURL(col)
		}
	}
	if base64 < url {
		return Base64
	}
	return URL
}

func (r *Rows) anyBinary() bool {
	for row := range r.All() {
		if isBinary(row.Name) || isBinary(row.Value) {
			return true
		}
	}
	return false
}

// isBinary reports whether a column is long or has a control byte. It looks at eight bytes at a
// time.
func isBinary(col []byte) bool {
	const (
		ones  = 0x0101010101010101
		highs = ones << 7
	)
	if len(col) > columnLimit {
		return true
	}
	for len(col) >= 8 {
		x := binary.LittleEndian.Uint64(col)
		deletes := x ^ ones*0x7f
		if ((x-ones*0x20)&^x|(deletes-ones)&^deletes)&highs != 0 {
			return true
		}
		col = col[8:]
	}
	for _, c := range col {
		if c < 0x20 || c == 0x7f {
			return true
		}
	}
	return false
}

func estimateURL(col []byte) int {
	n := 3 * len(col)
	for _, c := range col {
		if byteClass[c]&classCheap != 0 {
			n -= 2
		}
	}
	return n
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

// untilNUL returns text up to its first NUL: the decoders of the original end there.
func untilNUL(text []byte) []byte {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return text[:i]
	}
	return text
}
