// Package store says what a database needs of the place where its records live.
//
// A store keeps raw keys and values. Expiration, capacity limits, logging and the locks of
// read-modify-write operations belong to package db, which is the only caller.
package store

import (
	"gotycoon/internal/pieces"
	"gotycoon/ulog/update"
)

// Store keeps the records of one database. Any number of goroutines may call its methods at a time,
// except Apply: its caller holds the database's commit lock.
type Store interface {
	// Get appends the value of key to dst. r is asked before a large value is copied; with a nil r
	// the value is copied.
	Get(dst, key []byte, r Reader) (value []byte, found bool, err error)

	// Apply changes memory only and cannot fail. Readers see all of ups or nothing. at is the log
	// position of the last update; 0 means that the updates are not in the log (evicted and expired
	// records). The store must not keep the slices.
	Apply(at update.Stamp, ups []update.Update)

	// Scan calls visit for records in the store's order until visit returns false. visit must be
	// quick and must not call the store again; its slices are valid only during the call.
	Scan(from Start, visit func(key, value []byte) bool) error

	// Count returns the exact number of records. It may have to look up the records written since
	// the last call.
	Count() (int64, error)

	// Size returns the bytes that the records occupy, in memory or on disk.
	Size() int64

	// Close releases the store. A store on disk first makes everything applied durable.
	Close() error
}

// Preparer is a Store that can copy large values before anything is locked, so that only the caller
// that stores a large value waits for the copy.
type Preparer interface {
	Store

	// Prepare copies the large values that stay as they are (Update.Stays), for a later call of
	// Apply or Forget with the same updates. Several goroutines may call it at a time, with
	// different updates.
	Prepare(ups []update.Update)

	// Forget takes Prepare back for updates that will not be applied.
	Forget(ups []update.Update)
}

// Warmer is a Store that finds the records of several keys faster when it is told of them before.
type Warmer interface {
	Store

	// Warm brings what Get will look at for keys nearer to the processor. Get finds the same with
	// and without it.
	Warm(keys [][]byte)
}

// Freezer is a Store that can show its records as they were at an instant, while changes go on. The
// stores of packages memstore and filestore are Freezers. Close of a store on disk waits until
// every Frozen is closed; other stores may be closed before.
type Freezer interface {
	Store

	// Freeze returns the records as they are at an instant. It calls instant once; the instant is
	// when instant calls take, which takes a few microseconds. instant takes the locks that keep
	// the store from changing; the caller of Freeze holds none of them.
	Freeze(instant func(take func())) (Frozen, error)
}

// Frozen is the records of a Freezer at an instant. It is for one goroutine, which must close it.
type Frozen interface {
	// Count returns the number of records.
	Count() int64

	// Scan calls visit for every record in the store's order, or against it, until there are no
	// more or visit returns an error, which Scan then returns. visit may take as long as it likes;
	// its slices are valid only during the call. Scan may be called once, because it forgets the
	// records that it has passed.
	Scan(backward bool, visit func(key, value []byte) error) error

	// Close gives back what the Frozen holds. Closing twice is fine.
	Close() error
}

// Start says where a Scan begins and which way it goes.
type Start struct {
	Key       []byte // begin at this place of the order, whether there is a record with the key or not
	Edge      bool   // begin at the first record (Backward: the last); Key is ignored
	Inclusive bool   // the record with Key itself is visited too
	Backward  bool   // against the order; stores without an order never see it
	// the expiration times alone are looked at: a store for which values are dear may leave them
	// out
	Bare bool

	// Ask is called once for each AskEvery entries that the store passes over: removed records that
	// it still has. No lock that updates need is held then. An error ends the scan, which returns
	// it. With a nil Ask nobody is asked.
	Ask func() error
}

// AskEvery is how many entries a Scan passes over between two calls of Start.Ask.
const AskEvery = 1024

// LargeValue is the size from which on a Reader is asked before a value is copied.
const LargeValue = 64 << 10

// Reader is the caller for whom a value is read. A value can be much larger than the request for
// it, so the Reader is asked for room before the copy is made.
type Reader interface {
	// Large is called with the size of a large value for which there is no room yet, and returns
	// how many of its bytes are to be copied. After an error none is, and the error becomes that of
	// Get. It may be called under locks of the store, and must be quick.
	Large(size int) (wanted int, err error)
}

// Append appends to dst what r wants of value.
func Append(dst, value []byte, r Reader) ([]byte, error) {
	if r != nil && len(value) >= LargeValue && cap(dst)-len(dst) < len(value) {
		wanted, err := r.Large(len(value))
		if err != nil {
			return dst, err
		}
		value = value[:wanted]
	}
	return pieces.Append(dst, value), nil
}
