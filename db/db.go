// Package db is the timed database: records that can expire, in memory or in a file, with the operations that all
// protocols share, cursors, and the catalog of the databases that one server has open.
//
// There is one way in for updates:
//
//	Set, Increment, SetBulk, Cursor.SetValue, …    what the client asked for
//	(*DB).modify                                   key stripe locked, old value read, result put into a batch
//	(*DB).commit                                   commit lock { ulog.Append ; store.Apply }
//	(*Pending).Wait                                the update is as safe as the mode promises
//
// Lock order: sweep → key stripes, in ascending order → commit lock → locks of ulog and store. Only memory is
// touched under the commit lock; old values, which may be on disk, are read under the key's stripe.
package db

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/owed"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// Pending is what an operation owes its client. Its home is package owed.
type Pending = owed.Pending

// Heed is asked whether a long operation is to go on. Its home is package owed.
type Heed = owed.Heed

// DB is one database. It may be used by many goroutines.
type DB struct {
	expr   expr.Expr
	index  uint16
	sid    uint16
	now    func() time.Time
	logger *slog.Logger

	store    store.Store      // in the order of the database's comparator
	file     *filestore.Store // the same store where it is on disk, else nil
	log      *ulog.Log        // shared or private; nil for a memory database without -ulog
	shared   bool             // log is the server's update log
	hold     *ulog.Hold       // what the file needs of the log; nil for a database in memory
	recovery *recovery
	readOnly bool
	gate     *gate                 // of the catalog; nil: everything is let through
	vital    func(key []byte) bool // records that are stored as long as there is any room; nil: none
	maxKey   int                   // longest key in bytes

	stripes    stripes
	commitMu   sync.Mutex    // log and store change together, in one order
	last       atomic.Uint64 // stamp of the last commit to the log, see owe.go; changed under commitMu
	generation atomic.Uint64 // number of clears; a cursor of an older one is unset
	sweeper    sweeper
	batches    sync.Pool
	textEnd    int64 // offset of the next line of a text database; guarded by its one stripe

	checkpointed atomic.Int64 // log.Bytes() at the last checkpoint
	remembered   []byte       // what recovery has found of Catalog.Remember
	guard        *atomic.Bool // the catalog's clients may not update; nil for the services' database
	watch        atomic.Pointer[watch]
	renewals     renewals

	tx       atomic.Pointer[Transaction] // the one that is open
	over     atomic.Pointer[txView]      // updates of a shared transaction; operations go through it
	detached bool                        // this is what the owner of a transaction works on: nothing is collected in it
	base     *DB                         // of a detached one: the database below it
}

// used is the size that capacity limits are compared with: what an empty database of the kind has in the original, so
// that users' limits keep their meaning, and what the records occupy here.
func (d *DB) used() int64 { return expr.BaseSize(d.expr) + d.store.Size() }

// seconds is the current time as expiration counts it.
func (d *DB) seconds() int64 { return d.now().Unix() }

// read returns the value of a live record, in the room behind dst where that is large enough. r is asked before a large one is copied.
func (d *DB) read(r store.Reader, dst, key []byte) (value []byte, xt int64, found bool, err error) {
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

// split takes a stored value apart. A value too short for a prefix counts as absent.
func (d *DB) split(stored []byte) (xt int64, value []byte, ok bool) {
	if d.Persistent() {
		return record.MaxXT, stored, true
	}
	return record.Split(stored)
}

// writable returns why key cannot be changed now, and waits while too much is waiting for the disk. Whether clients may update is
// looked at here so that they need not wait first; what counts is the look in appendAndApply.
func (d *DB) writable(key []byte) error {
	if d.refuses() {
		return dberr.ErrReadOnly
	}
	if err := d.checkKey(key); err != nil {
		return err
	}
	return d.throttle()
}

// checkKey returns why the database can have no record of key.
func (d *DB) checkKey(key []byte) error {
	if len(key) > d.maxKey {
		return &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf("the key is longer than %d bytes", d.maxKey)}
	}
	return nil
}

// throttle waits while too much is waiting for the disk.
func (d *DB) throttle() error {
	if d.file == nil {
		return nil
	}
	return systemError(d.file.Throttle())
}

// throttleFor is throttle for a value, which has to wait for earlier ones if it is large.
func (d *DB) throttleFor(value []byte) error {
	if d.file == nil || len(value) < keepRoom {
		return nil
	}
	return systemError(d.file.ThrottleLarge())
}

// modify locks the key, lets body read the record and put updates into the batch, and commits them, also when body
// returns an error: a failed remove is logged all the same.
func (d *DB) modify(p *Pending, key []byte, body func(b *batch) error) error {
	if err := d.writable(key); err != nil {
		return err
	}
	b := d.newBatch()
	defer b.free()
	stripe, err := d.lockKey(p, key)
	if err != nil {
		return err
	}
	b.stripe, b.owed = stripe, p
	err = body(b)
	commitErr := d.commit(p, b)
	b.oweBatch(p)
	b.stripe.Unlock()
	if commitErr == nil {
		d.sweeper.touch(writeScore)
	}
	if waitErr := d.waitUnlessOwed(p, b); waitErr != nil {
		return waitErr
	}
	if commitErr != nil {
		return commitErr
	}
	return err
}

// commit appends the batch to the log and applies it, in one step for everybody else. The caller has locked the
// stripes of its keys.
func (d *DB) commit(p *Pending, b *batch) error {
	if b.err != nil {
		return b.err
	}
	if len(b.ups) == 0 && b.follow == nil {
		return nil
	}
	return d.commitTo(p, b, d.over.Load())
}

// commitTo is commit to the updates of a shared transaction, where over is not nil.
func (d *DB) commitTo(p *Pending, b *batch, over *txView) error {
	switch {
	case over != nil:
	case b.early != nil: // it has been admitted, and copied
		b.ups[0].Ahead = b.early.ups[0].Ahead
	default:
		if err := d.admit(b.ups); err != nil {
			return err
		}
	}
	if b.stays && b.early == nil && over == nil {
		if s, ok := d.store.(store.Preparer); ok {
			s.Prepare(b.ups)
			defer s.Forget(b.ups) // those that have not been applied
		}
	}
	at, err := d.appendAndApply(b, over)
	if err != nil {
		return systemError(err)
	}
	if w := d.watch.Load(); w != nil {
		w.committed(b.ups, b.version)
	}
	if b.mortals > 0 {
		d.sweeper.mortals.Add(b.mortals) // afterwards, so that a walk that begins now meets the records
	}
	if d.log == nil || over != nil {
		return nil
	}
	b.logged = true
	if p == nil {
		p = &b.own
	}
	p.Add(d.log, at)
	return nil
}

// appendAndApply changes log and store in one step. Here is where it counts whether clients may update: whatever an operation has waited
// for before, a server that refuses updates appends none once SetGuarded has had commitMu.
func (d *DB) appendAndApply(b *batch, over *txView) (at ulog.Stamp, err error) {
	d.commitMu.Lock()
	defer d.commitMu.Unlock()
	if d.refuses() {
		if !b.master && len(b.ups) > 0 {
			return 0, dberr.ErrReadOnly
		}
	} else if b.renewed != nil {
		b.takeOver()
	}
	if over != nil {
		over.Apply(0, b.ups)
		return 0, nil
	}
	if d.log != nil {
		if at, err = d.log.AppendReplicated(b.ups, b.follow); err != nil {
			return 0, err
		}
		if len(b.ups) > 0 {
			b.mark(at)
		}
	}
	d.store.Apply(at, b.ups)
	if b.follow != nil && d.file != nil {
		d.file.SetPosition(b.follow.State, at-ulog.Stamp(len(b.ups)))
	}
	return at, nil
}

// mark notes the stamp of a commit where readers look for it, before they can see what it changes.
func (b *batch) mark(at ulog.Stamp) {
	b.db.last.Store(uint64(at))
	if b.stripe != nil {
		b.stripe.last.Store(uint64(at))
		return
	}
	b.db.stripes.touch(&b.keys, at)
}

// waitUnlessOwed waits for a batch whose caller owes nothing to anybody.
func (d *DB) waitUnlessOwed(p *Pending, b *batch) error {
	if p != nil {
		return nil
	}
	return systemError(b.own.Wait())
}

// systemError gives an error from below the code that clients see; errors that have one keep it.
func systemError(err error) error {
	if reason := owed.Reason(err); reason != nil {
		return reason
	}
	if _, known := errors.AsType[*dberr.Error](err); known || err == nil {
		return err
	}
	return &dberr.Error{Code: dberr.SystemError, Message: err.Error(), Err: err}
}
