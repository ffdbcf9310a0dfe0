package db

import (
	"fmt"
	"strconv"

	"gotycoon/db/expr"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// target returns the key under which a new record is stored: its own, but in a text database, where every record is
// a line, the byte offset of the line as 16 hexadecimal digits (reference section 14.4).
func (d *DB) target(key, value []byte) []byte {
	if d.expr.Kind != expr.Text {
		return key
	}
	at := d.textEnd
	d.textEnd += d.lineSize(len(value))
	return fmt.Appendf(nil, "%016X", at)
}

// lineSize is the length of a line with its end, for a value without prefix.
func (d *DB) lineSize(value int) int64 {
	if !d.Persistent() {
		value += record.XTSize
	}
	return int64(value) + 1
}

// findTextEnd sets textEnd behind the last line.
func (d *DB) findTextEnd() error {
	if d.expr.Kind != expr.Text {
		return nil
	}
	return d.store.Scan(store.Start{Edge: true, Backward: true}, func(key, stored []byte) bool {
		at, err := strconv.ParseInt(string(key), 16, 64)
		if err == nil {
			d.textEnd = at + int64(len(stored)) + 1
		}
		return err != nil
	})
}
