package db

import (
	"bytes"
	"math"
	"sync/atomic"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// init prepares the sweeper of a database. collector wakes the catalog's collector; maybe says that
// records which can expire may exist already.
func (s *sweeper) init(d *core, collector chan<- struct{}, maybe bool) {
	s.db, s.collector = d, collector
	p := &d.expr.Params
	s.limited = p.KTCapCnt >= 0 || p.KTCapSiz >= 0
	if maybe {
		s.mortals.Store(1)
	}
}

func (s *sweeper) add(score int64) { s.score.Add(score) }

// useless reports whether there is nothing to collect.
func (s *sweeper) useless() bool { return !s.limited && s.mortals.Load() == s.settled.Load() }

// begin and end stand at the ends of a walk over the whole database.
func (w *walk) begin(s *sweeper) { w.met, w.before = false, s.mortals.Load() }

func (w *walk) end(s *sweeper) {
	if !w.met {
		s.settled.Store(w.before)
	}
}

// patiently locks a stripe, and waits for it.
func patiently(one *stripe) bool {
	one.Lock()
	return true
}

// Vacuum removes expired records: of the whole database, or of the next step records when step is
// over 1. It goes in short steps, so updates of other clients never wait for it; an error of heed
// ends it between two steps.
func (d *DB) Vacuum(heed Heed, step int64) error {
	if d.readOnly {
		return dberr.ErrReadOnly
	}
	if d.persistent() {
		return nil
	}
	if d.shared != nil {
		return d.shared.sweep(heed)
	}
	if step <= 1 {
		d.sweeper.stop()
		// of its own: what the collector does meanwhile cannot make it begin anew
		return d.sweeper.walkThrough(heed, new(walk), math.MaxInt64)
	}
	return d.sweeper.walkThrough(heed, &d.sweeper.walk, step)
}

// stop makes the sweeper begin a new walk.
func (s *sweeper) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.walk.on, s.begun = false, false
}

// walkThrough removes the expired records among the next steps records of a walk, but goes no
// further than the end of the walk.
func (s *sweeper) walkThrough(heed Heed, w *walk, steps int64) error {
	for steps > 0 {
		if err := heed.Now(); err != nil {
			return err
		}
		seen, more, err := s.walkOn(heed, w, steps)
		if err != nil || !more {
			return err
		}
		steps -= seen
	}
	return nil
}

// walkOn is one step of walkThrough. more says that the walk is not at its end.
func (s *sweeper) walkOn(heed Heed, w *walk, steps int64) (seen int64, more bool, err error) {
	if w == &s.walk {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	seen, err = s.collect(heed, w, steps, unwanted{s.expiredNow, &s.expired, patiently})
	return seen, w.on, err
}

// Bounds of one look at a store. A store in memory keeps its writers waiting while it is looked at;
// one in a file cannot grow.
const (
	maxCollect   = 1024                 // records
	maxLook      = 2 * time.Millisecond // and time, which is looked at
	collectClock = 64                   // once for so many records
)

// unwanted says what a step removes.
type unwanted struct {
	is      func(stored []byte) bool
	removed *atomic.Int64          // counts the removals
	lock    func(one *stripe) bool // locks the stripe of a key; false: leave the record
}

// sweep is one step: expired records, then the limits. An unreadable file is left to whoever reads
// it next. As in the original, the step after the end of a walk, or after a clear, only goes back
// to the first record.
func (s *sweeper) sweep(heed Heed, steps int64, lock func(one *stripe) bool) {
	d := s.db
	if s.rewound(heed) {
		return
	}
	if err := s.collectAll(heed, min(steps, maxCollect), unwanted{s.expiredNow, &s.expired, lock}); err != nil {
		return
	}
	surplus, over := unwanted{always, &s.evicted, lock}, int64(0)
	if limit := d.expr.Params.KTCapCnt; limit >= 0 {
		// what a file had too many of at the start goes by and by
		if n, err := d.store.Count(); err == nil {
			over = excess(n, limit)
			s.pacing.excess.Store(over)
			s.shed(heed, min(n-limit, max(steps, maxCollect)), surplus)
		}
	}
	if limit := d.expr.Params.KTCapSiz; limit >= 0 {
		used := d.used()
		s.pacing.excess.Store(max(over, excess(used, limit)))
		for ; used > limit && steps > 0 && heed.Now() == nil; used = d.used() {
			s.shed(heed, min(steps, maxCollect), surplus)
			steps -= maxCollect
		}
	}
}

// shed removes records because of a limit, and notes what that takes.
func (s *sweeper) shed(heed Heed, steps int64, surplus unwanted) {
	begun, before := time.Now(), s.evicted.Load()
	_ = s.collectAll(heed, steps, surplus)
	s.pacing.took(time.Since(begun), s.evicted.Load()-before)
}

// collectAll is collect for all of steps records, or as many as the sweeper's walk has left.
func (s *sweeper) collectAll(heed Heed, steps int64, u unwanted) error {
	w := &s.walk
	for steps > 0 {
		seen, err := s.collect(heed, w, steps, u)
		if err != nil || !w.on {
			return err
		}
		steps -= seen
	}
	return nil
}

// rewound makes the next step start a walk, unless a walk is under way, and reports whether it did.
// The caller holds sweeper.mu.
func (s *sweeper) rewound(heed Heed) bool {
	d := s.db
	if now := d.generation.Load(); now != s.generation {
		s.walk.on, s.begun, s.generation = false, false, now
	}
	if s.walk.on || s.begun {
		return false
	}
	before := s.mortals.Load()
	err := d.store.Scan(store.Start{Edge: true, Ask: heed.Asking()}, func(_, _ []byte) bool {
		s.begun = true
		return false
	})
	// a file may have any number of removed entries to pass over: not again for nothing
	if err == nil && !s.begun {
		s.settled.Store(before)
	}
	return err == nil
}

func (s *sweeper) expiredNow(stored []byte) bool {
	d := s.db
	xt, _, ok := d.Split(stored)
	return ok && record.Expired(xt, d.seconds())
}

func always([]byte) bool { return true }

// collect examines the next steps records of a walk, fewer where they are many or take long. It
// removes those that u names. At the end of the database the walk stops; the next call begins a new
// one. When the walk is the sweeper's, the caller holds sweeper.mu.
func (s *sweeper) collect(heed Heed, w *walk, steps int64, u unwanted) (seen int64, err error) {
	d := s.db
	var victims [][]byte
	if !w.on {
		w.begin(s)
	}
	steps = min(steps, maxCollect)
	begun, stopped := time.Now(), false
	from := store.Start{Edge: !w.on, Key: bytes.Clone(w.at), Ask: heed.Asking()}
	err = d.store.Scan(from, func(key, stored []byte) bool {
		w.at = append(w.at[:0], key...)
		xt, _, _ := d.Split(stored)
		w.met = w.met || xt != record.MaxXT
		if u.is(stored) {
			victims = append(victims, bytes.Clone(key))
		}
		seen++
		stopped = seen == steps || seen%collectClock == 0 && time.Since(begun) > maxLook
		return !stopped
	})
	w.on = stopped || err != nil && (w.on || seen > 0)
	if w == &s.walk {
		s.begun = false
	}
	if err != nil {
		return seen, systemError(err)
	}
	if !w.on {
		w.end(s)
	}
	for _, key := range victims {
		if err := heed.Now(); err != nil {
			return seen, err
		}
		if err := s.evict(key, u); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// evict removes a record that is still unwanted. The removal is not logged: expiration times are in
// the records, and limits are each server's own.
func (s *sweeper) evict(key []byte, u unwanted) error {
	d := s.db
	if d.file != nil {
		if err := d.file.Throttle(); err != nil {
			return systemError(err)
		}
	}
	stripe := d.stripes.of(key)
	if !u.lock(stripe) {
		return nil
	}
	defer stripe.Unlock()
	if d.over.Load() != nil { // the removal would be part of the transaction
		return nil
	}
	if d.keeps(key) {
		return nil
	}
	stored, found, err := d.store.Get(nil, key, &glance{})
	if err != nil || !found || !u.is(stored) {
		return systemError(err)
	}
	d.commitMu.Lock()
	defer d.commitMu.Unlock()
	d.store.Apply(0, []ulog.Update{{Op: ulog.OpRemove, Key: key}})
	u.removed.Add(1)
	return nil
}
