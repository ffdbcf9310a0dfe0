package tsv

import (
	"bytes"
	"encoding/base64"
	"slices"
	"sort"
)

// EncodedLen returns the number of bytes that AppendEncoded appends.
func (r *Rows) EncodedLen(e Encoding) int {
	n := 2 * r.Len()
	for row := range r.All() {
		n += columnLen(row.Name, e) + columnLen(row.Value, e)
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

func compareRaw(a, b Row) int { return bytes.Compare(a.Name, b.Name) }

// compareURL relies on '%' being less than every byte that is written unescaped, and on hexadecimal
// digits comparing like the bytes they stand for.
func compareURL(a, b Row) int {
	return compareAt(a.Name, b.Name, func(c byte) int {
		if byteClass[c]&classPlain != 0 {
			return 256 + int(c)
		}
		return int(c)
	})
}

// compareQuoted ranks an escaped byte as '=', since its escape begins with '=', and equal ranks by
// the byte.
func compareQuoted(a, b Row) int {
	return compareAt(a.Name, b.Name, func(c byte) int {
		if quotedPlain(c) {
			return 256 * int(c)
		}
		return 256*'=' + int(c)
	})
}

// compareAt compares by the rank of the first bytes that differ; a prefix comes first.
func compareAt(a, b []byte, rank func(byte) int) int {
	i := commonPrefix(a, b)
	if i == len(a) || i == len(b) {
		return len(a) - len(b)
	}
	return rank(a[i]) - rank(b[i])
}

// compareBase64 compares the first groups of four letters that differ.
func compareBase64(a, b Row) int {
	at := commonPrefix(a.Name, b.Name) / 3 * 3
	var buf [8]byte
	x := appendGroupOf(buf[:0:4], a.Name[at:])
	y := appendGroupOf(buf[4:4], b.Name[at:])
	return bytes.Compare(x, y)
}

func appendGroupOf(dst, rest []byte) []byte {
	return base64.StdEncoding.AppendEncode(dst, rest[:min(3, len(rest))])
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

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
