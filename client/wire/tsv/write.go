package tsv

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sort"
)

// columnLimit is how much of a column Choose looks at; longer columns always count as binary.
const columnLimit = 255

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

// EncodedLen returns the number of bytes that AppendEncoded appends.
func (r *Rows) EncodedLen(e Encoding) int {
	n := 2 * r.Len()
	for row := range r.All() {
		n += columnLen(row.Name, e) + columnLen(row.Value, e)
	}
	return n
}

func columnLen(col []byte, e Encoding) int {
	n := len(col)
	switch e {
	case Base64:
		return base64.StdEncoding.EncodedLen(n)
	case Quoted:
		for _, c := range col {
			if !quotedPlain(c) {
				n += 2
			}
		}
	case URL:
		for _, c := range col {
			if byteClass[c]&classPlain == 0 {
				n += 2
			}
		}
	}
	return n
}

// AppendEncoded sorts the rows by their encoded names and appends them in encoding e. All names
// must differ: call Sort before if they may not.
func (r *Rows) AppendEncoded(dst []byte, e Encoding) []byte {
	r.SortEncoded(e)
	for row := range r.All() {
		dst = AppendColumn(dst, row.Name, e)
		dst = append(dst, '\t')
		dst = AppendColumn(dst, row.Value, e)
		dst = append(dst, '\n')
	}
	return dst
}

// SortEncoded sorts the rows by their encoded names: they are sent in this order.
func (r *Rows) SortEncoded(e Encoding) {
	compare := comparison(e)
	if r.full == nil {
		if !slices.IsSortedFunc(r.list, compare) {
			slices.SortFunc(r.list, compare)
		}
		return
	}
	if order := (byOrder{r, compare}); !sort.IsSorted(order) {
		sort.Sort(order)
	}
}

// comparison returns how the encoded names of two rows compare.
func comparison(e Encoding) func(a, b Row) int {
	switch e {
	case Base64:
		return compareBase64
	case Quoted:
		return compareQuoted
	case URL:
		return compareURL
	}
	return compareRaw
}

// AppendColumn appends one column in encoding e.
func AppendColumn(dst, col []byte, e Encoding) []byte {
	switch e {
	case Base64:
		return base64.StdEncoding.AppendEncode(dst, col)
	case Quoted:
		return appendQuoted(dst, col)
	case URL:
		return AppendURL(dst, col)
	}
	return append(dst, col...)
}

const lowerHex = "0123456789abcdef"

// AppendURL appends text with everything but letters, digits and "-._~" as percent escapes in lower
// case.
func AppendURL(dst, text []byte) []byte {
	for _, c := range text {
		if byteClass[c]&classPlain != 0 {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', lowerHex[c>>4], lowerHex[c&15])
		}
	}
	return dst
}

func appendQuoted(dst, text []byte) []byte {
	for _, c := range text {
		if quotedPlain(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '=', lowerHex[c>>4], lowerHex[c&15])
		}
	}
	return dst
}

func quotedPlain(c byte) bool { return c >= ' ' && c < 0x7f && c != '=' }

// Classes of bytes.
const (
	classCheap = 1 << iota // counts as one byte in the estimate of the URL encoding
	classPlain             // is written unescaped in the URL encoding
)

// byteClass classifies every byte.
var byteClass = classify()

func classify() (t [256]byte) {
	for c := range t {
		if isAlphanumeric(byte(c)) {
			t[c] |= classCheap | classPlain
		}
	}
	for _, c := range []byte("-_.~") {
		t[c] |= classCheap | classPlain
	}
	for _, c := range []byte("!*'()") { // the estimate takes them for plain, the encoder does not
		t[c] |= classCheap
	}
	return t
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
