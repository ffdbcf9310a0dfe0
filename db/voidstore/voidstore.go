// Package voidstore is a store that forgets everything. It is for a server that only writes the
// update log, from which its followers are fed, as with the original's void database.
package voidstore

import (
	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// Store is always empty.
type Store struct{}

var _ store.Freezer = Store{}

// Get finds nothing.
func (Store) Get(dst, _ []byte, _ store.Reader) ([]byte, bool, error) { return dst, false, nil }

// Apply forgets the updates.
func (Store) Apply(update.Stamp, []update.Update) {}

// Scan visits nothing.
func (Store) Scan(store.Start, func(key, value []byte) bool) error { return nil }

// Count returns 0.
func (Store) Count() (int64, error) { return 0, nil }

// Size returns 0.
func (Store) Size() int64 { return 0 }

// Freeze returns a Frozen without records.
func (Store) Freeze(instant func(take func())) (store.Frozen, error) {
	instant(func() {})
	return frozen{}, nil
}

// Close does nothing.
func (Store) Close() error { return nil }

// A frozen is no records.
type frozen struct{}

// Count returns 0.
func (frozen) Count() int64 { return 0 }

// Scan visits nothing.
func (frozen) Scan(bool, func(key, value []byte) error) error { return nil }

// Close does nothing.
func (frozen) Close() error { return nil }
