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
// Wait before it tells anybody. An operation given nil waits itself, and for this server's log
// alone: that is for the server's own work, which no client is told of. The zero value is ready for
// use, by one goroutine at a time.
//
// Safe has two parts, in this order: this server's log has the update, and where answers wait for
// other servers (ulog.Confirmer), enough of them have it too.
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

	// Local says that nobody who is told is a client: a master hears that this server's log has its
	// updates. Such a Pending never waits for other servers, which may be waiting for this one.
	Local bool

	// Replicas is on how many other servers the client wants what it is told of, beyond what the
	// server and the database require; 0: the client has not asked.
	Replicas int

	taken int // bytes that Purse has given, see Taken

	owed [2]debt // nearly always the one shared log
	more []debt  // further logs, where databases have private ones

	confirms int  // debts for other servers since the beginning, see Confirms
	present  debt // those of the present request, see Waits
}

// debt is a stamp up to which a log must be safe, and one up to which other servers must have it.
type debt struct {
	log *ulog.Log
	at  ulog.Stamp
	confirmation
}

// confirmation is what other servers must have before a client is told: everything up to a stamp.
// The numbers are those of ulog.Confirmer.
type confirmation struct {
	upTo         ulog.Stamp // 0: nothing
	usual, asked int
}

// Add notes that a log must be safe up to a stamp before the client is told anything, and that
// other servers must have everything up to the stamp confirm, 0 for nothing. replicas is the number
// of other servers that the database requires, below 0 for the server's number.
func (p *Pending) Add(log *ulog.Log, at, confirm ulog.Stamp, replicas int) {
	d := p.debt(log)
	d.at = max(d.at, at)
	c := log.Confirmer(p.Replicas > 0)
	if c == nil || p.Local || confirm == 0 {
		return
	}
	owes := confirmation{confirm, usual(c, replicas), p.Replicas}
	d.join(owes)
	p.present.log = log
	p.present.join(owes)
	p.confirms++
}

// join adds what other servers must have to what they must have already.
func (c *confirmation) join(o confirmation) {
	c.upTo, c.usual, c.asked = max(c.upTo, o.upTo), max(c.usual, o.usual), max(c.asked, o.asked)
}

// usual returns the number of a database. Below 0 the database has none, and the server's counts.
func usual(c ulog.Confirmer, replicas int) int {
	if replicas < 0 {
		return c.Required()
	}
	return replicas
}

// debt returns the debt for a log.
func (p *Pending) debt(log *ulog.Log) *debt {
	for i := range p.owed {
		o := &p.owed[i]
		if o.log == log || o.log == nil {
			o.log = log
			return o
		}
	}
	for i := range p.more {
		if p.more[i].log == log {
			return &p.more[i]
		}
	}
	p.more = append(p.more, debt{log: log})
	return &p.more[len(p.more)-1]
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

// Confirmed reports whether other servers have everything up to a stamp, as far as the client is
// concerned. replicas is as for Add.
func (p *Pending) Confirmed(log *ulog.Log, at ulog.Stamp, replicas int) bool {
	if at == 0 || p == nil || p.Local {
		return true
	}
	c := log.Confirmer(p.Replicas > 0)
	return c == nil || at <= c.Confirmed(usual(c, replicas), p.Replicas)
}

// Asks reports whether the client has asked for other servers itself.
func (p *Pending) Asks() bool { return p != nil && p.Replicas > 0 }

// Admits returns why an update of the client is to be refused, because other servers could not
// confirm it.
func (p *Pending) Admits(log *ulog.Log, replicas int) error {
	if p == nil || p.Local {
		return nil
	}
	c := log.Confirmer(p.Replicas > 0)
	if c == nil {
		return nil
	}
	return c.Admits(usual(c, replicas), p.Replicas)
}

// Wait returns when every collected update is safe, and forgets the updates. After an error none of
// them may be acknowledged. After *Unconfirmed the updates are in this server's log; after any
// other error the log has failed for good.
func (p *Pending) Wait() error {
	if err := p.WaitLogs(); err != nil {
		p.Forget()
		return err
	}
	return p.WaitConfirmed()
}

// WaitLogs returns when this server's logs have every collected update. What other servers must
// confirm stays collected.
func (p *Pending) WaitLogs() error {
	var first error
	for i := range p.owed {
		first = p.owed[i].wait(first)
	}
	for i := range p.more {
		first = p.more[i].wait(first)
	}
	return first
}

// WaitConfirmed returns when other servers have confirmed what they must confirm, and forgets it.
// WaitLogs has returned nil.
func (p *Pending) WaitConfirmed() error {
	var first error
	for i := range p.owed {
		first = p.owed[i].waitConfirmed(first)
	}
	for i := range p.more {
		first = p.more[i].waitConfirmed(first)
	}
	p.more = p.more[:0]
	return first
}

// Forget forgets what is collected: nobody will be told.
func (p *Pending) Forget() { p.owed, p.more = [2]debt{}, p.more[:0] }

// Confirms returns how many debts for other servers have been added. Only the difference between
// two of these numbers has a meaning: a request between them has, or has not, such a debt.
func (p *Pending) Confirms() int { return p.confirms }

// Begin notes that a request begins.
func (p *Pending) Begin() { p.present = debt{} }

// Waits reports whether other servers have not confirmed yet what the present request owes.
func (p *Pending) Waits() bool {
	o := &p.present
	if o.upTo == 0 {
		return false
	}
	c := o.log.Confirmer(true)
	return c != nil && c.Confirmed(o.usual, o.asked) < o.upTo
}

// wait makes one log safe and forgets its stamp, also after an earlier error.
func (o *debt) wait(first error) error {
	if o.at == 0 {
		return first
	}
	err := o.log.Wait(o.at)
	o.at = 0
	if first != nil {
		return first
	}
	return err
}

// waitConfirmed waits for other servers and forgets the debt, also after an earlier error.
func (o *debt) waitConfirmed(first error) error {
	if o.log == nil {
		return first
	}
	log, c := o.log, o.confirmation
	*o = debt{}
	if c.upTo == 0 || first != nil {
		return first
	}
	if by := log.Confirmer(true); by != nil {
		if err := by.WaitConfirmed(c.upTo, c.usual, c.asked); err != nil {
			return &Unconfirmed{Err: err, All: by.Confirmed(0, 0) < c.upTo}
		}
	}
	return nil
}

// Unconfirmed says that this server has the updates, and that not enough other servers have
// confirmed them: a failover may lose them, and it may not.
type Unconfirmed struct {
	Err error
	All bool // nothing may be acknowledged, not even what needs no other server
}

// Error returns the reason.
func (e *Unconfirmed) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *Unconfirmed) Unwrap() error { return e.Err }

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
