package db

import (
	"gotycoon/db/expr"
	"strconv"
)

// Status returns the rows of the status procedure, reference section 10. Rows that describe the layout of the
// original's files have the values of a fresh file there.
func (d *DB) Status(p *Pending) (map[string]string, error) {
	rows := expr.StatusRows(d.expr)
	rows["path"] = d.Path()
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
