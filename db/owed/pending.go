// Package owed holds what an operation and its client owe each other: the updates that must be
// safe before the client hears of them (Pending), the rights that the client must still have when
// its update is made (Rights), the memory that copies of large values take (Purse), and the
// question whether a long operation is to go on (Heed).
//
// The package is a leaf below the databases and the connections: a connection collects a Pending
// without knowing what a database is.
package owed

import "gotycoon/ulog"

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
