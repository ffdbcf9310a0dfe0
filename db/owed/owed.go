// Package owed holds what an operation and its client owe each other: the updates that must be
// safe before the client hears of them (Pending), the rights that the client must still have when
// its update is made (Rights), the memory that copies of large values take (Purse), and the
// question whether a long operation is to go on (Heed).
//
// The package is a leaf below the databases and the connections: a connection collects a Pending
// without knowing what a database is.
package owed

import (
	"errors"

	"gotycoon/ulog"
)

// Pending collects the updates whose acknowledgement is still owed to a client. An operation that
// is given a Pending returns before its update is as safe as the mode promises; the caller calls
// Wait before it tells anybody. An operation given nil waits itself. The zero value is ready for
// use, by one goroutine at a time.
type Pending struct {
	// Rights is asked by updates when nothing is left to wait for; nil: the client may do
	// everything.
	Rights Rights

	// Purse is asked before a large value is copied, for reading or for the log; nil: there is
	// always memory.
	Purse Purse

	// Lingers says that the client's visitors may take seconds: they are procedures of a script.
	// Whoever else needs several keys does not wait for such a visitor while holding the others.
	Lingers bool

	taken int // bytes that Purse has given, see Taken

	owed [2]debt // nearly always the one shared log
	more []debt  // further logs, where databases have private ones
}

// debt is a stamp up to which a log must be safe.
type debt struct {
	log *ulog.Log
	at  ulog.Stamp
}

// Add notes that a log must be safe up to a stamp before the client is told anything.
func (p *Pending) Add(log *ulog.Log, at ulog.Stamp) {
	for i := range p.owed {
		o := &p.owed[i]
		if o.log == log || o.log == nil {
			o.log, o.at = log, max(o.at, at)
			return
		}
	}
	for i := range p.more {
		if p.more[i].log == log {
			p.more[i].at = max(p.more[i].at, at)
			return
		}
	}
	p.more = append(p.more, debt{log, at})
}

// Stamp returns the stamp up to which a log must be safe, 0 where nothing of the log is owed.
func (p *Pending) Stamp(log *ulog.Log) ulog.Stamp {
	for _, o := range append(p.owed[:], p.more...) {
		if o.log == log {
			return o.at
		}
	}
	return 0
}

// Wait returns when every collected update is safe, and forgets the updates. After an error none
// of them may be acknowledged: the log has failed for good.
func (p *Pending) Wait() error {
	var first error
	for i := range p.owed {
		first = p.owed[i].wait(first)
	}
	for i := range p.more {
		first = p.more[i].wait(first)
	}
	p.more = p.more[:0]
	return first
}

// wait makes one log safe and forgets the debt, also after an earlier error.
func (o *debt) wait(first error) error {
	if o.log == nil {
		return first
	}
	err := o.log.Wait(o.at)
	*o = debt{}
	if first != nil {
		return first
	}
	return err
}

// Rights is what a client may do.
//
// An operation is admitted before it begins, and may then wait: for another client's transaction,
// for the disk, for a script. A right that is withdrawn during the wait must not lead to an update
// that is acknowledged later. So an update asks Current once it holds the locks of its keys. Where
// the rules have changed, it releases the locks, calls Renew, and begins again.
type Rights interface {
	// Current reports whether the rules are still those by which the client was admitted. It is
	// called under locks and does not wait.
	Current() bool

	// Renew returns nil when the client may still do what it is doing. It may take long. Current
	// reports true afterwards, unless the rules have changed again.
	Renew() error
}

// MayGoOn reports whether an update may go on without another look at the client's rights.
func (p *Pending) MayGoOn() bool { return p == nil || p.Rights == nil || p.Rights.Current() }

// MayLinger reports whether the client's visitors may take long.
func (p *Pending) MayLinger() bool { return p != nil && p.Lingers }

// Await waits for an event, unless the event is nil, and then renews the client's rights where
// they have changed. The caller holds no lock.
func (p *Pending) Await(event <-chan struct{}) error {
	if event != nil {
		<-event
	}
	if p.MayGoOn() {
		return nil
	}
	return p.Rights.Renew()
}

// Purse gives memory for a client's copies of large values. The client's connection gives the
// memory back when the request has been served.
type Purse interface {
	Hold(bytes int) error // before a copy is made; after an error the copy is not made
	LetGo(bytes int)      // returns some of the memory early
}

// Large asks the purse for the memory of a value that is about to be copied. It implements
// store.Reader.
func (p *Pending) Large(size int) (wanted int, err error) {
	if p == nil || p.Purse == nil {
		return size, nil
	}
	if err := p.Purse.Hold(size); err != nil {
		return 0, reason{err}
	}
	p.taken += size
	return size, nil
}

// Taken returns how many bytes Large has been given. Only the difference between two of these
// numbers has a meaning.
func (p *Pending) Taken() int {
	if p == nil {
		return 0
	}
	return p.taken
}

// GiveBack returns the memory that Large was given since Taken returned before: the caller uses
// none of these values any more.
func (p *Pending) GiveBack(before int) {
	if p != nil && p.taken > before {
		p.LetGo(p.taken - before)
		p.taken = before
	}
}

// LetGo returns bytes to the purse. Taken still counts them.
func (p *Pending) LetGo(n int) {
	if p != nil && p.Purse != nil {
		p.Purse.LetGo(n)
	}
}

// Heed is asked by a long operation whether to go on: at least every 10 ms, also within the work
// for one key. An error ends the operation, which returns the same error and leaves the database
// whole. A nil Heed never ends an operation.
//
// The function decides what counts as a reason: the client has gone, the time of the request is
// over, the server stops.
type Heed func() error

// Now asks at once.
func (h Heed) Now() error {
	if h == nil {
		return nil
	}
	return h()
}

// Asking returns h in the form in which a store asks, nil for a nil Heed. See Reason.
func (h Heed) Asking() func() error {
	if h == nil {
		return nil
	}
	return func() error {
		if err := h(); err != nil {
			return reason{err}
		}
		return nil
	}
}

// reason marks an error of a Heed or a Purse while a store passes the error on.
type reason struct{ error }

// Reason returns the error with which a Heed or a Purse has ended an operation. It returns nil
// where err has another source.
func Reason(err error) error {
	if r, ok := errors.AsType[reason](err); ok {
		return r.error
	}
	return nil
}

// Heeding asks a Heed from within a loop whose rounds are far shorter than 10 ms: once for every
// HeedSteps steps of work. The zero value, and nil, ask nobody. A Heeding belongs to one goroutine.
type Heeding struct {
	heed  Heed
	steps int   // since heed was asked
	err   error // the answer of heed that ends the work
}

// HeedSteps is the work between two questions. Half a million bytes compared, or as many cells of
// a table of distances computed, take less than 5 ms on a slow machine.
const HeedSteps = 1 << 19

// NewHeeding returns a Heeding that asks h.
func NewHeeding(h Heed) *Heeding { return &Heeding{heed: h} }

// Asking is Heed.Asking.
func (h *Heeding) Asking() func() error {
	if h == nil {
		return nil
	}
	return h.heed.Asking()
}

// Work counts n steps and reports whether the work may go on.
func (h *Heeding) Work(n int) bool {
	if h == nil || h.heed == nil {
		return true
	}
	if n >= HeedSteps {
		return h.Now()
	}
	if h.steps += n; h.steps >= HeedSteps {
		return h.Now()
	}
	return h.err == nil
}

// Now asks at once and reports whether the work may go on.
func (h *Heeding) Now() bool {
	if h == nil {
		return true
	}
	if h.err == nil {
		h.steps, h.err = 0, h.heed.Now()
	}
	return h.err == nil
}

// Err returns why the work had to end.
func (h *Heeding) Err() error {
	if h == nil {
		return nil
	}
	return h.err
}
