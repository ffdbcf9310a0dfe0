// Package store says what a database needs of the place its records live in.
//
// A store keeps raw keys and values: expiration, capacity limits, logging and locking of
// read-modify-write operations belong to package db, which is the only caller.
package store

import "gotycoon/ulog/update"

// Store keeps the records of one database. All methods may be called by many goroutines, but Apply by
// one at a time: its caller holds the database's commit lock.
type Store interface {
	// Get appends the value of key to dst. r is asked before a large value is copied; nil: it is copied.
	Get(dst, key []byte, r Reader) (value []byte, found bool, err error)

	// Apply changes memory only and cannot fail. Readers see all of ups or nothing. at is the log position
	// of the last update; 0 means that the updates are not in the log (evicted and expired records). The store
	// must not keep the slices.
	Apply(at update.Stamp, ups []update.Update)

	// Scan calls visit for records in the store's order until visit returns false. visit must be quick and must
	// not call the store again; its slices are valid only during the call.
	Scan(from Start, visit func(key, value []byte) bool) error

	// Count returns the exact number of records. It may have to look at the records written since the last call.
	Count() (int64, error)

	// Size returns the bytes that the records occupy, in memory or on disk.
	Size() int64

	// Close releases the store. A store on disk first makes everything applied durable.
	Close() error
}

// Preparer is a Store that can copy large values before anything is locked, so that only who stores them waits for that.
type Preparer interface {
	Store

	// Prepare copies the large values among updates that stay as they are (Update.Stays) until Apply or Forget has been called with them.
	// It may be called by many goroutines at a time, with different updates.
	Prepare(ups []update.Update)

	// Forget takes Prepare back for updates that will not be applied.
	Forget(ups []update.Update)
}

// Freezer is a Store whose records can be had as they are at an instant. Those of package memstore and filestore are. The
// Close of one on disk waits for every Frozen to be closed; others may be closed before.
type Freezer interface {
	Store

	// Freeze returns the records as they are at an instant, while changes go on. It calls instant once, and the instant is
	// when that calls take, which takes a few microseconds. instant takes the locks that keep the store from changing;
	// the caller of Freeze holds none of them.
	Freeze(instant func(take func())) (Frozen, error)
}

// Frozen is the records of a Freezer at an instant. It is for one goroutine, which must close it.
type Frozen interface {
	// Count returns the number of records.
	Count() int64

	// Scan calls visit for every record in the store's order, or against it, until there are no more or visit returns an
	// error, which Scan then returns. visit may take as long as it likes; its slices are valid only during the call. Scan may be
	// called once: what it has passed is forgotten.
	Scan(backward bool, visit func(key, value []byte) error) error

	// Close gives back what the Frozen holds. Closing twice is fine.
	Close() error
}

// Start says where a Scan begins and which way it goes.
type Start struct {
	Key       []byte // begin at this place of the order, whether a record has the key or not
	Edge      bool   // begin at the first record (Backward: the last); Key is ignored
	Inclusive bool   // the record with Key itself is visited too
	Backward  bool   // against the order; stores without an order never see it

	// Ask is called, while nothing is locked that updates need, once for each AskEvery entries that the store passes over: removed ones that it still has.
	// An error ends the scan, which returns it. nil: nobody is asked.
	Ask func() error
}

// AskEvery is how many entries a Scan passes over between two questions.
const AskEvery = 1024
