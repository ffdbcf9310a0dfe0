package db

import (
	"bytes"
	"log/slog"
	"sync"
	"sync/atomic"

	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/gate"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/internal/pieces"
	"gotycoon/ulog"
)

// The wall between the operations and the store.
//
// # The problem
//
// Get, Increment, a cursor, a claim and a transaction all end in the same few steps: lock keys,
// read records, put updates into a batch, commit the batch, and have the client wait until the
// commit is safe. Were each operation to take these steps by itself, each would be a place where an
// acknowledged update can get lost.
//
// # The rule
//
// core owns everything below the operations: store, file, update log, locks, stamps, the room left
// on the disk, the right to update. DB embeds core and adds the operations. A method of core has no
// DB to call, so no commit depends on an operation. An operation that changes records leaves log,
// store and commitMu to core, and asks core for
//
//	modify, examine         one key: lock it, call the operation's body, commit, wait
//	newBatch, lockKeys,     several keys: the same steps one by one; the operation only chooses
//	commit, waitUnlessOwed  which keys and which updates
//	goAhead                 a large value: log and store take it before the key is locked
//	read, records, seek     a live record, a key; the store with the updates of a shared
//	                        transaction, without claimed records
//	owe, oweKeys, oweAll    a reply that only reads: wait for what the reply is based on
//
// # The invariants of a commit
//
//  1. An update that depends on a record holds the stripe of the key from the read to the commit.
//     Two increments of one counter never read the same value.
//  2. What can be refused is refused before the append: right to update, length of key and value,
//     room on the disk. After the append an update cannot be taken back.
//  3. Log and store change under commitMu, the log first. So both have the updates in one order,
//     and a stamp names one state of the store: everything up to 80, and nothing after it. While
//     clients use the database, only the collector of expired records applies without an append:
//     every server collects for itself.
//  4. The stamps of database and stripe are set between the append and Apply. A reader that sees a
//     value therefore sees the stamp it has to wait for, see owe.go.
//  5. Under commitMu only memory is touched. A write to the log goes to its buffer; Apply changes
//     the store's memory, and a file takes the updates later, from its overlay.
//  6. No lock is held while the client waits for the log. The next update of the key can be in the
//     same fsync.
//
// Example. Clients 1 and 2 add 1 to a counter of 5. Client 1 has the stripe: it reads 5, appends
// "6" with stamp 80, sets the stripe's stamp to 80, applies, unlocks, and waits for 80. Client 2
// gets the stripe meanwhile, reads 6 and appends "7" with stamp 81. One fsync makes both safe, and
// both are answered.
//
// # Another kind of store
//
// An engine that exists already, such as PostgreSQL, belongs below this wall: as a store.Store (see
// Engine) where the update log of this package stays the truth, or, where the engine has a log of
// its own, as another core. Such a core must keep the invariants. A lock on a row can replace the
// stripe (1), the engine's commit can replace append and Apply in one (2, 3), and its position in
// the write-ahead log can be the stamp (4). Invariant 6 demands that a commit in the engine can be
// issued without waiting for its disk.
//
// # What was rejected
//
// An interface between the two layers. It would have some twenty methods and one implementation,
// and every Get and Set would pay for dynamic calls. When a second core exists, the list above is
// the interface to extract.

// core is the state of one database and the way of a commit, see the essay above.
type core struct {
	form
	info *Info

	sid    uint16 // server ID of updates that are made here
	logger *slog.Logger

	store    store.Store      // in the order of the database's comparator
	file     *filestore.Store // the same store where it is on disk, else nil
	log      *ulog.Log        // shared or private; nil for a memory database without -ulog
	shared   bool             // log is the server's update log
	hold     *ulog.Hold       // what the file needs of the log; nil for a database in memory
	recovery *recovery
	readOnly bool
	gate     *gate.Gate // of the catalog; nil: everything is let through
	// records that are stored as long as there is any room; nil: none
	vital func(key []byte) bool

	stripes  stripes
	commitMu sync.Mutex // log and store change together, in one order
	// stamp of the last commit to the log, see owe.go; changed under commitMu
	last       atomic.Uint64
	generation atomic.Uint64 // number of clears; a cursor of an older one is unset
	sweeper    sweeper
	batches    sync.Pool
	lines      lines
	versions   versions

	checkpointed atomic.Int64 // log.Bytes() at the last checkpoint
	remembered   []byte       // what recovery has found of Catalog.Remember
	// the catalog's clients may not update; nil for the services' database
	guard *atomic.Bool
	watch atomic.Pointer[watch]

	tx atomic.Pointer[Transaction] // the one that is open
	// updates of a shared transaction; operations go through it
	over atomic.Pointer[txView]
	// this is what the owner of a transaction works on: nothing is collected in it
	detached bool
	base     *core // of a detached one: the database below it
}

// refuses reports whether clients may not update.
func (d *core) refuses() bool { return d.readOnly || d.guard != nil && d.guard.Load() }

// bytewise reports whether keys that begin alike stand together.
func (d *core) bytewise() bool {
	return d.file != nil && d.expr.Params.RComp == expr.Lexical ||
		d.expr.Kind.Ordered() && d.expr.Params.RComp == expr.Lexical
}

// used is the size that capacity limits are compared with: the size of an empty database of the
// kind in the original, so that users' limits keep their meaning, plus what the records take here.
func (d *core) used() int64 { return expr.BaseSize(d.expr) + d.store.Size() }

// records returns the store in which operations find the records.
func (d *core) records() store.Store {
	if over := d.over.Load(); over != nil {
		return d.unclaimed(over)
	}
	return d.unclaimed(d.store)
}

// read returns the value of a live record, in the room behind dst where that is large enough. r is
// asked before a large value is copied.
func (d *core) read(r store.Reader, dst, key []byte) (value []byte, xt int64, found bool, err error) {
	at := len(dst)
	dst, found, err = d.records().Get(dst, key, r)
	if err != nil || !found {
		return nil, 0, false, systemError(err)
	}
	xt, value, found = d.split(dst[at:])
	if !found || record.Expired(xt, d.seconds()) {
		return nil, 0, false, nil
	}
	return value, xt, true, nil
}

// piece copies some records out of the store.
func (d *core) piece(from store.Start) (piece []entry, more bool, err error) {
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

// seek returns the first record from a place, with the key of the record that follows. ok is false
// when there is none. r is asked before a large value is copied.
func (d *core) seek(r store.Reader, from store.Start) (e entry, ok bool, err error) {
	var lack error
	err = d.records().Scan(from, func(key, stored []byte) bool {
		if ok {
			e.next = append([]byte{}, key...)
			return false
		}
		ok = true
		e.key = bytes.Clone(key)
		e.stored, lack = store.Append([]byte{}, stored, r)
		return lack == nil
	})
	if lack != nil {
		err = lack
	}
	return e, ok, systemError(err)
}

// HasStored reports whether the record of a key has exactly this value, in stored form.
func (d *core) HasStored(key, value []byte) (bool, error) {
	got, found, err := d.store.Get(nil, key, nil)
	return found && bytes.Equal(got, value), systemError(err)
}
