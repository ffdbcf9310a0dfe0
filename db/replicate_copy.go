package db

import (
	"bytes"

	"gotycoon/db/expr"
	"gotycoon/db/owed"
	"gotycoon/db/store"
)

// Volatile tells whether the records are in memory only, and the engine is not one of -pldb.
func (d *DB) Volatile() bool { return d.file == nil && d.expr.Kind != expr.Plugged }

// Mergeable tells whether a copy of a database whose records come in the order of their keys' bytes can be merged into this one, which
// then never lacks what both have. Others are cleared first.
func (d *DB) Mergeable() bool {
	order, ordered := d.Order()
	return ordered && order == expr.Lexical && d.expr.Kind != expr.Text
}

// Strangers returns keys of records behind after (from the first record, where it is nil) and up to upTo (the last record, where it is
// nil) that known does not know, at most limit of them, in a Mergeable database.
func (d *DB) Strangers(after, upTo []byte, limit int, known func(key []byte) bool) (keys [][]byte, err error) {
	err = d.keys(new(owed.Heeding), store.Start{Key: after, Edge: after == nil}, func(key []byte) bool {
		if upTo != nil && bytes.Compare(key, upTo) > 0 {
			return false
		}
		if !known(key) {
			keys = append(keys, bytes.Clone(key))
		}
		return len(keys) < limit
	})
	return keys, err
}

// HasStored tells whether the record of a key has just this value, in stored form.
func (d *DB) HasStored(key, value []byte) (bool, error) {
	got, found, err := d.store.Get(nil, key, nil)
	return found && bytes.Equal(got, value), systemError(err)
}
