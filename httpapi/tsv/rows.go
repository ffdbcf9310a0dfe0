package tsv

import (
	"bytes"
	"slices"
	"unsafe"
)

// Row is one name with its value. Inside Rows both are slices of the caller's buffers.
type Row struct {
	Name, Value []byte
}

// Rows is a small map from names to values that keeps the order of Add. A later value of a name hides the
// earlier ones. The zero value is empty and ready for use. Rows keeps the slices it is given and copies nothing.
type Rows struct {
	// Memory gives the table memory, of which a row takes more than the two bytes that it may have in a body; nil: there is always
	// some.
	Memory Memory

	list []Row
	held int   // bytes of list that Memory has given
	err  error // why there is no more
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
)

// Err returns why rows were not added: the error of Memory.
func (r *Rows) Err() error { return r.err }

// Reset empties r and keeps its memory, unless it has grown to more than limit rows.
func (r *Rows) Reset(limit int) {
	r.held, r.err = 0, nil
	if cap(r.list) > limit {
		r.list = nil
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
	room := max(fewRows, 2*cap(r.list))
	if r.Memory != nil && room > freeRows {
		if r.err == nil {
			r.err = r.Memory.Hold(room * rowSize)
		}
		if r.err != nil {
			return false
		}
	}
	r.list = moved(make([]Row, 0, room), r.list)
	if r.Memory != nil && room > freeRows {
		r.Memory.LetGo(r.held)
		r.held = room * rowSize
	}
	return true
}

// moved appends list to dst, which has room for it, piece by piece: Go cannot stop a goroutine in the middle of a copy, and a collection of
// garbage would have everybody wait for millions of rows.
func moved(dst, list []Row) []Row {
	const piece = 4 << 10
	for len(list) > piece {
		dst = append(dst, list[:piece]...)
		list = list[piece:]
	}
	return append(dst, list...)
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
