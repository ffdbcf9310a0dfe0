// Package tsv holds the tables that remote procedure calls take and give: names with values,
// written as tab-separated rows, the columns plain or encoded as Base64, quoted-printable or
// percent escapes.
//
// Server and client share the package. It knows no procedure and no connection.
package tsv

import (
	"bytes"
	"iter"
	"slices"
	"sort"
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

// Err returns why rows were not added: the error of Memory.
func (r *Rows) Err() error { return r.err }

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
