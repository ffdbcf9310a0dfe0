package db

import (
	"fmt"
	"strconv"

	"gotycoon/db/expr"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// lines is the end of a text database, where the next record goes. In a text database every record
// is a line, and its key is the byte offset of the line as 16 hexadecimal digits. The zero value is
// for a database of another kind.
type lines struct {
	text   bool
	prefix int   // length of what is stored in front of a value
	end    int64 // offset of the next line; guarded by the one stripe
}

// newLines returns the lines of an empty database.
func newLines(f *form) lines { return lines{text: f.expr.Kind == expr.Text, prefix: f.prefixSize()} }

// target returns the key under which a new record is stored. That is the record's own key, except
// in a text database.
func (l *lines) target(key, value []byte) []byte {
	if !l.text {
		return key
	}
	at := l.end
	l.end += int64(l.prefix+len(value)) + 1
	return fmt.Appendf(nil, "%016X", at)
}

// findEnd sets the end behind the last line of a store.
func (l *lines) findEnd(s store.Store) error {
	if !l.text {
		return nil
	}
	return s.Scan(store.Start{Edge: true, Backward: true}, func(key, stored []byte) bool {
		at, err := strconv.ParseInt(string(key), 16, 64)
		if err == nil {
			l.end = at + int64(len(stored)) + 1
		}
		return err != nil
	})
}

// placeLines gives records that go to a text database their keys, which are the places of their
// lines. The caller has locked the stripe.
func (b *batch) placeLines() {
	if !b.db.lines.text {
		return
	}
	for i := range b.ups {
		if u := &b.ups[i]; u.Op == ulog.OpSet {
			_, value, _ := b.db.Split(u.Value)
			u.Key = b.db.lines.target(u.Key, value)
		}
	}
}
