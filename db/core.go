package db

import (
	"bytes"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/gate"
	"gotycoon/db/record"
	"gotycoon/db/replay"
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
// # Records in an engine that several servers share
//
// A database whose records are in a PostgreSQL has the same operations, and another way of a
// commit: it is the engine that locks, orders and keeps (package db/engine). Such a core has
// shared, and each of the few ways in (modify, setChunk, removeChunk, AcceptBulk, getBulk,
// replicate, clear, Begin) turns there at its beginning, before anything is locked. What an
// operation means stays in its body, which is the same for both: it reads through a batch and puts
// updates into it. So a body must stand to be run again, on what another server has left meanwhile:
// only its last run counts.
//
//	here     lock keys → body on the store → log and store → wait for the log
//	shared   wait for a group's turn → body on the group's view → the engine's commit
//
// The invariants hold there in another form. The condition on the revision that was read replaces
// the stripe (1), the engine's transaction is append and Apply in one (2, 3), and an operation
// returns when its update is safe, so that no reader can see what is not (4, 6). Everything that
// only reads uses records, a store that asks the engine (sharedStore). Stripes, stamps, room,
// versions and the sweeper are of no use there, and stay as they are after their initialization.
//
// # What was rejected
//
// An interface between the two layers, with one implementation for each. Every Get and Set would
// pay for dynamic calls, and worse: a body that is given to a method of an interface needs memory
// of the heap, with everything that it captures. So the way in asks whether there is an engine, and
// a body is given to functions alone that keep it nowhere (gather.Do runs it in its caller's
// goroutine).

// core is the state of one database and the way of a commit, see the essay above.
type core struct {
	form
	info *Info

	sid    uint16 // server ID of updates that are made here
	logger *slog.Logger

	store store.Store      // in the order of the database's comparator
	file  *filestore.Store // the same store where it is on disk, else nil
	log   *ulog.Log        // shared or private; nil for a memory database without -ulog
	// log is the server's update log
	sharesLog bool
	// the way to an engine that keeps the records for several servers; nil: they are in store
	shared   *shared
	hold     *ulog.Hold // what the file needs of the log; nil for a database in memory
	recovery *recovery
	readOnly bool
	gate     *gate.Gate // of the catalog; nil: everything is let through
	// records that are stored as long as there is any room; nil: none
	vital func(key []byte) bool

	stripes  stripes
	commitMu sync.Mutex // log and store change together, in one order
	// stamp of the last commit to the log, see owe.go; changed under commitMu
	last       atomic.Uint64
	clients    atomic.Uint64 // the same of updates that followers must confirm, see owe.go
	begun      ulog.Stamp    // end of the shared log when it was opened; 0 without one, see owe.go
	generation atomic.Uint64 // number of clears; a cursor of an older one is unset
	sweeper    sweeper
	batches    sync.Pool
	lines      lines
	versions   versions

	checkpointed atomic.Int64 // log.Bytes() at the last checkpoint
	remembered   []byte       // what recovery has found of Catalog.Remember
	// the catalog's clients may not update; nil for the services' database
	guard *guard
	watch atomic.Pointer[watch]

	tx atomic.Pointer[Transaction] // the one that is open
	// updates of a shared transaction; operations go through it
	over atomic.Pointer[txView]
	// this is what the owner of a transaction works on: nothing is collected in it
	detached bool
	base     *core // of a detached one: the database below it
}

// DB is one database. It may be used by many goroutines.
//
// Its own methods are the operations. What it is (see Info) and its log come from core.
type DB struct{ core }

// recovery is the state of one file while the start decides about it, see recover.go.
type recovery struct {
	*core
	followed bool               // the file was a database of its log before it was opened
	asItIs   bool               // opened as it is on purpose, or nothing more to say about it
	passed   *replay.PassedOver // what the file was opened without; nil: nothing
	// the private log beside the file, until recovery has dealt with it; nil: there is none
	private *logDir
	// directory of a log from which a tool brings the file up to date; empty: none
	bringFrom string
	// directory of the log that a read-only database was brought up to date from, in memory
	ownLog string
}

// Transaction collects updates of one database and commits them as one group of the log, or none.
//
// It has two lives. At first it is its owner's: the owner works on DB(), which shows the collected
// updates; everybody else sees the database as it was, and their updates wait. After Share it is
// everybody's, as transactions of the original are: all operations of all clients see the collected
// updates and add to them, until somebody commits or aborts. Updates of a master wait in both
// lives: what a master has acknowledged must not be taken back. Nothing of a transaction is in the
// log before the commit, so the end of the process aborts it.
type Transaction struct {
	db   *core
	view *DB
	over *txView
	hard bool
	lock *lock // of a database that an engine keeps; nil: of another one

	shared atomic.Bool
	turned chan struct{} // closed when it is shared, or has ended
	ended  chan struct{}

	mu   sync.Mutex // ends are one at a time
	gone bool       // committed or aborted
}

// sweeper walks a database in small steps, removes expired records and enforces the capacity
// limits. Who takes the steps says "Who collects" in sweep.go.
//
// A walk is worth its time only when there may be something to remove. So records that can expire
// are counted as they are stored. When a whole walk has met none, there is nothing to do until the
// count has changed.
type sweeper struct {
	db      *core
	score   atomic.Int64
	limited bool         // there are capacity limits
	mortals atomic.Int64 // records stored so far that can expire
	settled atomic.Int64 // mortals when the last walk began that met none
	expired atomic.Int64 // records removed because their time was over
	evicted atomic.Int64 // and because of a limit

	collector chan<- struct{} // of one: wakes the catalog's collector
	asked     atomic.Bool     // the collector is to come to this database
	pacing    pacing          // of clients that exceed the limits of a file

	// held over a step by whoever takes it; guards the fields below
	mu         sync.Mutex
	walk       walk   // the one that goes on with each update
	begun      bool   // the next step starts a walk
	generation uint64 // clears of the database when the walk began
}

// walk is a way through a whole database, in steps. Nothing is held between two steps.
type walk struct {
	on     bool   // the walk is under way
	at     []byte // key examined last, while on
	met    bool   // the walk has met a record that can expire
	before int64  // mortals when the walk began
}

// shared is the way of one database to the engine that keeps its records.
type shared struct {
	db     *core
	engine engine.Engine
	groups *gather.Gather
	lanes  *lanes // of the server's transactions
	claims *terms // in which the server claims records
	copies *copies
	// of monitoring, nil before somebody has asked
	figures atomic.Pointer[figures]
}

// figures are the size of a database as the engine has told it.
type figures struct {
	records, bytes int64
	at             time.Time
}

// lock is the engine's lock of a database for one transaction.
type lock struct {
	tx  engine.Tx
	end func()         // of the context under which it is held
	id  engine.GroupID // that its group will have
}

// lanes are those of a server's transactions in the engine, of all its databases.
type lanes struct {
	mu   sync.Mutex
	free []engine.GroupID // the next group of each lane that no transaction has

	large chan struct{} // of scans, see largeScans
}

// terms are those of a server's lease for what it claims in the engine, of all its databases.
type terms struct {
	wake chan struct{} // of one: somebody needs a term, or has brought a debt

	mu     sync.Mutex
	term   engine.Term
	lost   <-chan struct{} // closed when the term has ended; nil: there was none yet
	end    func()          // gives the lease back
	begun  chan struct{}   // closed, and made anew, when a term begins
	wanted bool
	last   uint64 // number of the last claim
	debts  []debt
}

// debt is a claim that nobody has any more, and that the engine has not heard of.
type debt struct {
	of    *shared
	id    engine.ClaimID
	claim *engine.Claimed // nil: it is not known whether anything was claimed
}

// versions is what last writer wins needs of one database: the file, which has the versions, and
// the number of updates that takeOver has changed.
type versions struct {
	file    *filestore.Store // nil for a database in memory
	renewed atomic.Int64     // updates of other servers that became updates of this one since the start
	told    atomic.Int64     // renewed when it was logged last
}

// lww reports whether the database keeps versions.
func (s *versions) lww() bool { return s.file != nil && s.file.LWW() }

// entry is a record as a cursor sees it, copied.
type entry struct {
	key, stored []byte
	next        []byte // key of the following record; nil: there is none
}

// refuses reports whether clients may not update.
func (d *core) refuses() bool { return d.readOnly || d.guard != nil && d.guard.up.Load() }

// refusal returns what clients are told when refuses is true.
func (d *core) refusal() error {
	if d.readOnly {
		return dberr.ErrReadOnly
	}
	return d.guard.refusal()
}

// barred returns what an update has to wait for, nil for nothing. A transaction that is not shared
// bars everybody else; updates of a master (joins is false) are barred by a shared transaction too.
func (d *core) barred(joins bool) <-chan struct{} {
	t := d.tx.Load()
	switch {
	case t == nil:
		return nil
	case !t.shared.Load():
		return t.turned
	case !joins:
		return t.ended
	}
	return nil
}

// ordered reports whether the records come in the order of the keys.
func (d *core) ordered() bool { return d.file != nil || d.expr.Kind.Ordered() }

// describe returns the Info of a database that has been brought up to date.
func (d *core) describe() *Info {
	e, order := &d.expr, d.expr.Params.RComp
	ordered := d.ordered()
	return &Info{
		Expr: e.Raw, Path: e.Path, Kind: e.Kind,
		MaxKey: d.maxKey, Persistent: d.persistent(), ReadOnly: d.readOnly,
		Shared: d.shared != nil, OnDisk: d.file != nil, Volatile: d.file == nil && e.Kind != expr.Plugged,
		Order: order, Ordered: ordered,
		Mergeable:     ordered && order == expr.Lexical && e.Kind != expr.Text,
		KeepsVersions: d.versions.lww(),
		Remembers:     !d.readOnly && (d.file != nil || d.log != nil),
		Remembered:    d.remembered, PassedOver: d.recovery.passed,
	}
}

// Info returns what the database is. The caller must not change it.
func (d *core) Info() *Info { return d.info }

// Bytewise reports whether keys that begin alike stand together.
func (d *core) Bytewise() bool {
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

// unclaimed returns s without the claimed records.
func (d *core) unclaimed(s store.Store) store.Store {
	w := d.watch.Load()
	if w == nil || !w.opts.Claims || w.claims.n.Load() == 0 {
		return s
	}
	if s == d.store {
		return &w.claims.all
	}
	return &hiding{s, &w.claims}
}

// keeps reports whether a record must not be collected: a client has claimed the message that it
// holds, or has given the message back.
func (d *core) keeps(key []byte) bool {
	w := d.watch.Load()
	return w != nil && w.claims.keeps(key)
}

// read returns the value of a live record, in the room behind dst where that is large enough. r is
// asked before a large value is copied.
func (d *core) read(r store.Reader, dst, key []byte) (value []byte, xt int64, found bool, err error) {
	at := len(dst)
	dst, found, err = d.records().Get(dst, key, r)
	if err != nil || !found {
		return nil, 0, false, systemError(err)
	}
	value, xt, found = d.live(dst[at:])
	return value, xt, found, nil
}

// live takes apart the stored value of a record, which is found unless it has expired.
func (d *core) live(stored []byte) (value []byte, xt int64, found bool) {
	xt, value, found = d.Split(stored)
	if !found || xt != record.MaxXT && record.Expired(xt, d.seconds()) { // the clock takes as long as a hash
		return nil, 0, false
	}
	return value, xt, true
}

const (
	scanRecords = 512      // keys copied out of the store at a time
	scanBytes   = 64 << 10 // and their size
)

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
