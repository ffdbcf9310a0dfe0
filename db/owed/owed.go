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
	late []Late  // commits that may still have to be made

	confirms     int  // debts for other servers since the beginning, see Confirms
	lateConfirms bool // see ConfirmsLate
	present      debt // those of the present request, see Waits
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

// A Wait is what Pending.Wait would wait for. Of several kinds the last one counts.
type Wait int

// The kinds of waits, from the shortest to the longest.
const (
	Nothing Wait = iota
	Log          // a write of the log
	Disk         // a write of the log, and its fsync
	Servers      // the confirmation of other servers
)

// Waiting returns what Wait would wait for.
func (p *Pending) Waiting() Wait {
	most := Nothing
	if len(p.late) > 0 {
		most = Log
	}
	for i := range p.owed {
		if p.owed[i].log != nil {
			most = max(most, p.owed[i].waiting())
		}
	}
	for i := range p.more {
		most = max(most, p.more[i].waiting())
	}
	return most
}

// OneLog returns the only log for which something is collected, nil if there are several or none.
func (p *Pending) OneLog() *ulog.Log {
	if p.owed[1].log != nil || len(p.more) > 0 {
		return nil
	}
	return p.owed[0].log
}

// WaitLogs sees to the commits that were put off (Defer), and returns when this server's logs have
// every collected update. What other servers must confirm stays collected.
func (p *Pending) WaitLogs() error {
	var first error
	if p.lateConfirms = false; len(p.late) > 0 {
		first = p.finish()
	}
	if p.nothing() {
		return first
	}
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
	if p.nothing() {
		return nil
	}
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

// nothing reports whether nothing is collected: the first debt takes the first place.
func (p *Pending) nothing() bool { return p.owed[0].log == nil && len(p.more) == 0 }

// Forget forgets what is collected: nobody will be told. A commit that was put off is left to the
// others that share it.
func (p *Pending) Forget() {
	p.owed, p.more = [2]debt{}, p.more[:0]
	p.forgetLate()
}

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
