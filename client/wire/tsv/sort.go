package tsv

import (
	"bytes"
	"encoding/base64"
	"slices"
	"sort"
)

// Sort brings the rows into the byte order of their names and removes the hidden ones.
func (r *Rows) Sort() {
	if !r.increasing() {
		r.order()
		r.keepLast()
	}
}

// increasing reports whether the rows are in order and their names differ.
func (r *Rows) increasing() bool {
	var last []byte
	first := true
	for row := range r.All() {
		if !first && bytes.Compare(last, row.Name) >= 0 {
			return false
		}
		last, first = row.Name, false
	}
	return true
}

// order sorts by name; rows of one name stay in the order of Add.
func (r *Rows) order() {
	if r.full == nil {
		slices.SortStableFunc(r.list, compareRaw)
		return
	}
	sort.Stable(byOrder{r, compareRaw})
}

// keepLast keeps the last row of every run of equal names.
func (r *Rows) keepLast() {
	n, size := 0, r.Len()
	for i := range size {
		row := *r.at(i)
		if i+1 < size && bytes.Equal(row.Name, r.at(i+1).Name) {
			continue
		}
		*r.at(n) = row
		n++
	}
	r.truncate(n)
}

// at returns the i-th row.
func (r *Rows) at(i int) *Row {
	if part := i / partRows; part < len(r.full) {
		return &r.full[part][i%partRows]
	}
	return &r.list[i-len(r.full)*partRows]
}

// truncate removes the rows behind the first n.
func (r *Rows) truncate(n int) {
	if part := n / partRows; part < len(r.full) {
		r.list = r.full[part]
		clear(r.full[part:])
		r.full = r.full[:part]
	}
	n -= len(r.full) * partRows
	clear(r.list[n:])
	r.list = r.list[:n]
}

// byOrder sorts the rows of several parts.
type byOrder struct {
	r       *Rows
	compare func(a, b Row) int
}

// Len implements sort.Interface.
func (o byOrder) Len() int { return o.r.Len() }

// Less implements sort.Interface.
func (o byOrder) Less(i, j int) bool { return o.compare(*o.r.at(i), *o.r.at(j)) < 0 }

// Swap implements sort.Interface.
func (o byOrder) Swap(i, j int) {
	a, b := o.r.at(i), o.r.at(j)
	*a, *b = *b, *a
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
