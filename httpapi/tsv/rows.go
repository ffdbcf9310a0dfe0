package tsv

import (
	"bytes"
	"slices"
)

// Row is one name with its value. Inside Rows both are slices of the caller's buffers.
type Row struct {
	Name, Value []byte
}

// Rows is a small map from names to values that keeps the order of Add. A later value of a name hides the
// earlier ones. The zero value is empty and ready for use. Rows keeps the slices it is given and copies nothing.
type Rows struct {
	list []Row
}

// Reset empties r and keeps its memory, unless it has grown to more than limit rows.
func (r *Rows) Reset(limit int) {
	if cap(r.list) > limit {
		r.list = nil
		return
	}
	clear(r.list)
	r.list = r.list[:0]
}

// Add appends one row.
func (r *Rows) Add(name, value []byte) {
	r.list = append(r.list, Row{name, value})
}

// Len returns the number of rows, hidden ones included.
func (r *Rows) Len() int { return len(r.list) }

// List returns the rows. The slice is valid until the next change of r.
func (r *Rows) List() []Row { return r.list }

// Get returns the value of name, and whether there is one.
func (r *Rows) Get(name string) ([]byte, bool) {
	for i := len(r.list) - 1; i >= 0; i-- {
		if string(r.list[i].Name) == name {
			return r.list[i].Value, true
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
		r.list = lastOfEach(r.list)
	}
}

// increasing reports whether the rows are in order and their names differ.
func (r *Rows) increasing() bool {
	for i := 1; i < len(r.list); i++ {
		if bytes.Compare(r.list[i-1].Name, r.list[i].Name) >= 0 {
			return false
		}
	}
	return true
}

// order sorts by name; rows of one name stay in the order of Add.
func (r *Rows) order() {
	slices.SortStableFunc(r.list, func(a, b Row) int { return bytes.Compare(a.Name, b.Name) })
}

// lastOfEach keeps the last row of every run of equal names.
func lastOfEach(list []Row) []Row {
	n := 0
	for i, row := range list {
		if i+1 < len(list) && bytes.Equal(row.Name, list[i+1].Name) {
			continue
		}
		list[n] = row
		n++
	}
	clear(list[n:])
	return list[:n]
}
