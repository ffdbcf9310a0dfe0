package jsonrows

import (
	"bytes"
	"slices"
	"strconv"

	"gotycoon/client/wire/tsv"
)

// Form says how the output of a procedure is written.
type Form struct {
	Number func(name []byte) bool // whether a row is a number; the rows of records are asked as "_"
	List   List                   // in what form records are written
	Fault  *Fault                 // the call has failed: what is told beside the row ERROR
}

// List is a form of the records.
type List byte

// The forms. Where the procedure has records, an array is there even if it is empty.
const (
	NoRecords List = iota // none are expected; there may be some nevertheless
	Records               // [{"key": …, "value": …}]
	Ranked                // the keys, in the order of their values, which are their places
)

// Fault is what a failed call tells besides its text.
type Fault struct {
	Status int // of HTTP
	Code   int // of the database; 0: it was not the database
}

// Encode writes the rows of a procedure's output as an object in a line. It sorts them.
func Encode(w *Writer, rows *tsv.Rows, f Form) {
	rows.Sort()
	w.Raw("{")
	m := members{w: w}
	records := 0
	for row := range rows.All() {
		switch {
		case isRecord(row):
			records++
		case f.Fault != nil && string(row.Name) == "ERROR":
			m.name("error")
			w.Text(row.Value)
		default:
			m.name(string(row.Name))
			m.value(row.Value, f.Number(row.Name))
		}
	}
	if f.Fault != nil {
		if f.Fault.Code != 0 {
			m.name("code")
			w.Raw(strconv.Itoa(f.Fault.Code))
		}
		m.name("status")
		w.Raw(strconv.Itoa(f.Fault.Status))
	}
	switch {
	case records == 0 && (f.List == NoRecords || f.Fault != nil):
	case f.List == Ranked:
		m.name("keys")
		m.keys(ranked(rows, records))
	default:
		m.name("records")
		m.records(rows, f.Number([]byte("_")))
	}
	w.Raw("}\n")
}

func isRecord(row tsv.Row) bool { return len(row.Name) > 0 && row.Name[0] == '_' }

// members writes the members of an object, or the elements of an array.
type members struct {
	w    *Writer
	some bool // something has been written, which a comma must follow
}

// next begins another one.
func (m *members) next() {
	if m.some {
		m.w.Raw(",")
	}
	m.some = true
}

func (m *members) name(name string) {
	m.next()
	m.w.Text([]byte(name))
	m.w.Raw(":")
}

// value writes the value of a row.
func (m *members) value(value []byte, number bool) {
	if number && IsNumber(value) { // not so infinity
		m.w.Raw(string(value))
	} else {
		m.w.Bytes(value)
	}
}

// records writes the rows of records as an array.
func (m *members) records(rows *tsv.Rows, number bool) {
	m.w.Raw("[")
	elements := members{w: m.w}
	for row := range rows.All() {
		if isRecord(row) {
			elements.next()
			m.w.Raw(`{"key":`)
			m.w.Bytes(row.Name[1:])
			m.w.Raw(`,"value":`)
			elements.value(row.Value, number)
			m.w.Raw("}")
		}
	}
	m.w.Raw("]")
}

// keys writes the names of records as an array.
func (m *members) keys(rows []tsv.Row) {
	m.w.Raw("[")
	elements := members{w: m.w}
	for _, row := range rows {
		elements.next()
		m.w.Bytes(row.Name[1:])
	}
	m.w.Raw("]")
}

// ranked returns the rows of records in the order of their values, which are their places.
func ranked(rows *tsv.Rows, records int) []tsv.Row {
	all := make([]tsv.Row, 0, records)
	for row := range rows.All() {
		if isRecord(row) {
			all = append(all, row)
		}
	}
	slices.SortFunc(all, func(a, b tsv.Row) int { // numbers without leading zeros
		if d := len(a.Value) - len(b.Value); d != 0 {
			return d
		}
		return bytes.Compare(a.Value, b.Value)
	})
	return all
}
