package db

import (
	"bytes"

	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/internal/pieces"
)

// Stored calls visit for every record in its stored form (unless the database is persistent, the expiration time as 5 bytes in
// front of the value), expired ones included, in the database's order. The slices are valid during the call. Nothing is held
// meanwhile: a record that is stored or removed while the walk goes on may be seen or not. An error of visit ends the walk and is
// returned.
func (d *DB) Stored(visit func(key, stored []byte) error) error {
	from := store.Start{Edge: true}
	for {
		piece, more, err := d.piece(from)
		if err != nil {
			return systemError(err)
		}
		for i := range piece {
			if err := visit(piece[i].key, piece[i].stored); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		from = store.Start{Key: piece[len(piece)-1].key}
	}
}

// piece copies some records out of the store.
func (d *DB) piece(from store.Start) (piece []entry, more bool, err error) {
	size := 0
	err = d.store.Scan(from, func(key, stored []byte) bool {
		if more = len(piece) == scanRecords || size >= scanBytes; more {
			return false
		}
		piece = append(piece, entry{key: bytes.Clone(key), stored: pieces.Clone(stored)})
		size += len(key) + len(stored)
		return true
	})
	return piece, more, err
}

// SplitStored takes a stored value of this database apart. live is false for one that has expired, and for one too short to have
// an expiration time where it must have one.
func (d *DB) SplitStored(stored []byte) (xt int64, value []byte, live bool) {
	xt, value, ok := d.split(stored)
	return xt, value, ok && !record.Expired(xt, d.seconds())
}

// ExpiredAt tells whether a record with this absolute expiration time has expired by now.
func (d *DB) ExpiredAt(xt int64) bool { return !d.Persistent() && record.Expired(xt, d.seconds()) }
