package db

import (
	"bytes"
	"sync"
	"sync/atomic"

	"gotycoon/db/store"
	"gotycoon/ulog"
)

// Scores of the collector, reference section 6.4: every access adds to a sum, and at sweepAt the sum in units of
// writeScore is the number of records to examine.
const (
	writeScore = 256
	readScore  = writeScore / 8
	sweepAt    = 8 * writeScore
	idleSteps  = 8
)

// sweeper walks a database in small steps, removes expired records and enforces the capacity limits.
//
// A walk is only worth its time when there may be something to remove. Records that can expire are counted as they are
// stored; when a whole walk has met none, there is nothing to do until the count has changed.
type sweeper struct {
	score   atomic.Int64
	limited bool         // there are capacity limits
	mortals atomic.Int64 // records stored so far that can expire
	settled atomic.Int64 // mortals when the last walk began that met none
	expired atomic.Int64 // records removed because their time was over
	evicted atomic.Int64 // and because of a limit

	mu         sync.Mutex // held by the one collector; guards the fields below
	met        bool       // the walk has met a record that can expire
	before     int64      // mortals when the walk began
	at         []byte     // key examined last
	on         bool       // at is set: a walk is under way
	begun      bool       // the next step starts a walk
	generation uint64     // clears of the database when the walk began
}

// init tells whether records that can expire may be there already.
func (s *sweeper) init(p Params, maybe bool) {
	s.limited = p.KTCapCnt >= 0 || p.KTCapSiz >= 0
	if maybe {
		s.mortals.Store(1)
	}
}

func (s *sweeper) add(score int64) { s.score.Add(score) }

// useless tells whether there is nothing to collect.
func (s *sweeper) useless() bool { return !s.limited && s.mortals.Load() == s.settled.Load() }

// meet notes a record of a walk; xt is its expiration time.
func (s *sweeper) meet(xt int64) {
	if xt != MaxXT {
		s.met = true
	}
}

// beginWalk and endWalk stand at the ends of a walk over the whole database.
func (s *sweeper) beginWalk() { s.met, s.before = false, s.mortals.Load() }

func (s *sweeper) endWalk() {
	if !s.met {
		s.settled.Store(s.before)
	}
}

// touch adds to the score and examines some records when it is high enough. No stripe may be held.
func (d *DB) touch(score int64) {
	if d.sweeper.useless() || d.detached || d.sweeper.score.Add(score) < sweepAt || d.Persistent() || d.readOnly {
		return
	}
	if !d.sweeper.mu.TryLock() {
		return // somebody else is at it
	}
	defer d.sweeper.mu.Unlock()
	if steps := d.sweeper.score.Swap(0) / writeScore; steps > 0 {
		d.sweep(steps)
	}
}

// idle examines some records of a database that nobody uses.
func (d *DB) idle() {
	if d.sweeper.useless() || d.Persistent() || d.readOnly || !d.sweeper.mu.TryLock() {
		return
	}
	defer d.sweeper.mu.Unlock()
	d.sweep(idleSteps)
}

// Vacuum removes expired records: of the whole database, or of the next step records when step is over 1.
func (d *DB) Vacuum(step int64) error {
	if d.readOnly {
		return ErrReadOnly
	}
	if d.Persistent() {
		return nil
	}
	d.sweeper.mu.Lock()
	defer d.sweeper.mu.Unlock()
	if step > 1 {
		return d.collect(step, d.expiredNow, &d.sweeper.expired)
	}
	d.sweeper.on = false
	for {
		if err := d.collect(maxCollect, d.expiredNow, &d.sweeper.expired); err != nil || !d.sweeper.on {
			return err
		}
	}
}

// maxCollect bounds the records that one step copies the keys of.
const maxCollect = 1024

// sweep is one step: expired records, then the limits. An unreadable file is met again by whoever reads it.
// As in the original, the step after the end of a walk, or after a clear, only goes back to the first record.
func (d *DB) sweep(steps int64) {
	if d.rewound() {
		return
	}
	if err := d.collect(min(steps, maxCollect), d.expiredNow, &d.sweeper.expired); err != nil {
		return
	}
	if limit := d.expr.Params.KTCapCnt; limit >= 0 {
		if n, err := d.store.Count(); err == nil && n > limit {
			_ = d.collect(n-limit, always, &d.sweeper.evicted)
		}
	}
	if limit := d.expr.Params.KTCapSiz; limit >= 0 && d.used() > limit {
		_ = d.collect(steps, always, &d.sweeper.evicted)
	}
}

// rewound makes the next step start a walk, if none is under way. The caller holds sweeper.mu.
func (d *DB) rewound() bool {
	s := &d.sweeper
	if now := d.generation.Load(); now != s.generation {
		s.on, s.begun, s.generation = false, false, now
	}
	if s.on || s.begun {
		return false
	}
	err := d.store.Scan(store.Start{Edge: true}, func(_, _ []byte) bool {
		s.begun = true
		return false
	})
	return err == nil
}

func (d *DB) expiredNow(stored []byte) bool {
	xt, _, ok := d.split(stored)
	return ok && expired(xt, d.seconds())
}

func always([]byte) bool { return true }

// collect examines the next steps records and removes those that unwanted names, which it adds to removed. At the end of the database the
// walk stops; the next call begins anew. The caller holds sweeper.mu.
func (d *DB) collect(steps int64, unwanted func(stored []byte) bool, removed *atomic.Int64) error {
	var victims [][]byte
	seen := int64(0)
	s := &d.sweeper
	if !s.on {
		s.beginWalk()
	}
	from := store.Start{Edge: !s.on, Key: bytes.Clone(s.at)}
	err := d.store.Scan(from, func(key, stored []byte) bool {
		s.at = append(s.at[:0], key...)
		xt, _, _ := d.split(stored)
		s.meet(xt)
		if unwanted(stored) {
			victims = append(victims, bytes.Clone(key))
		}
		seen++
		return seen < steps
	})
	s.on, s.begun = seen == steps && err == nil, false
	if err != nil {
		return systemError(err)
	}
	if !s.on {
		s.endWalk()
	}
	for _, key := range victims {
		if err := d.evict(key, unwanted); err != nil {
			return err
		}
		removed.Add(1)
	}
	return nil
}

// evict removes a record that is still unwanted. It is not logged: expiration times are in the records, and limits
// are each server's own.
func (d *DB) evict(key []byte, unwanted func(stored []byte) bool) error {
	if d.file != nil {
		if err := d.file.Throttle(); err != nil {
			return systemError(err)
		}
	}
	stripe := d.stripes.of(key)
	stripe.Lock()
	defer stripe.Unlock()
	if d.over.Load() != nil { // the removal would be part of the transaction
		return nil
	}
	if d.keeps(key) {
		return nil
	}
	stored, found, err := d.store.Get(nil, key)
	if err != nil || !found || !unwanted(stored) {
		return systemError(err)
	}
	d.commitMu.Lock()
	defer d.commitMu.Unlock()
	d.store.Apply(0, []ulog.Update{{Op: ulog.OpRemove, Key: key}})
	return nil
}
