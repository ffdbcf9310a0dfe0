package db

import (
	"strconv"

	"gotycoon/db/expr"
	"gotycoon/db/filestore"
)

// Count returns the number of records, expired ones that are not yet collected included; -1 for a
// text database.
func (d *DB) Count(p *Pending) (int64, error) {
	if d.expr.Kind == expr.Text {
		return -1, nil
	}
	n, err := d.records().Count()
	if err != nil {
		return 0, systemError(err)
	}
	return n, d.oweAll(p)
}

// Size returns the bytes that the database takes: the size of its file, or of its records in
// memory.
func (d *DB) Size() int64 {
	if d.file != nil {
		return d.file.FileSize()
	}
	return d.used()
}

// Status returns the rows of the procedure status. Rows about the layout of the original's files
// have the values of a fresh file there.
func (d *DB) Status(p *Pending) (map[string]string, error) {
	rows := expr.StatusRows(d.expr)
	rows["path"] = d.path()
	if _, ok := rows["flags"]; ok && d.readOnly {
		rows["flags"] = "0" // a file that is only read is not marked as open
	}
	if d.expr.Kind == expr.Text {
		rows["size"] = strconv.FormatInt(d.Size(), 10)
		return rows, nil
	}
	n, err := d.Count(p)
	if err != nil {
		return nil, err
	}
	rows["count"] = strconv.FormatInt(n, 10)
	rows["size"] = strconv.FormatInt(d.Size(), 10)
	if _, ok := rows["realsize"]; ok {
		rows["realsize"] = rows["size"]
	}
	return rows, nil
}

// Measures are figures of a database for monitoring.
type Measures struct {
	Records int64           // about: see filestore.(*Store).Estimate; -1 for a text database
	Bytes   int64           // see Size
	Expired int64           // records removed since the start because their time was over
	Evicted int64           // records removed since the start because of a limit
	File    filestore.Stats // of a database OnDisk, text databases included
}

// Measure returns the figures. It takes microseconds, but for a file with many new keys some
// milliseconds.
func (d *DB) Measure() Measures {
	m := Measures{Records: -1, Bytes: d.Size(), Expired: d.sweeper.expired.Load(), Evicted: d.sweeper.evicted.Load()}
	switch {
	case d.expr.Kind == expr.Text: // its records are not counted
	case d.file != nil:
		m.Records = d.file.Estimate()
	default:
		if n, err := d.store.Count(); err == nil {
			m.Records = n
		}
	}
	if d.file != nil {
		m.File = d.file.Stats()
	}
	return m
}
