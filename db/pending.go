package db

import "gotycoon/ulog"

// Pending collects updates whose acknowledgement is still owed to a client. An operation that is given a
// Pending returns before its update is as safe as the mode promises; the caller calls Wait before it tells
// anybody. An operation given nil waits itself. The zero value is ready for use, by one goroutine at a time.
type Pending struct {
	// Rights is asked by updates, once nothing is left to wait for; nil: the client may do everything.
	Rights Rights

	// Purse is asked before a large value is copied, for reading it or for the log; nil: there is always memory.
	Purse Purse

	taken int // bytes that Purse has given, see Taken

	owed [2]owing // nearly always the one shared log
	more []owing  // updates of further logs, where databases have private ones
}

// Rights is what the client may do whose operations are given a Pending.
//
// An operation is let in before it is begun, and may then wait: for somebody's transaction, for the disk, for a script that is called. A
// right that has been taken away meanwhile must not lead to an update that is acknowledged later. So an update asks Current when it has the
// locks of its keys; where the rules have changed it gives the locks back, asks Renew, and begins anew.
type Rights interface {
	// Current reports whether the rules are those that the client was let in by. It is called under locks and does not wait.
	Current() bool

	// Renew returns nil when the client may still do what it is doing. It may take long. Current reports true afterwards, unless the rules
	// have changed again.
	Renew() error
}

// current reports whether an update may go on without a look at the client's rights.
func (p *Pending) current() bool { return p == nil || p.Rights == nil || p.Rights.Current() }

// await waits for an event, unless it is nil, and looks at the rights of the client where they have changed. No lock is held.
func (p *Pending) await(event <-chan struct{}) error {
	if event != nil {
		<-event
	}
	if p.current() {
		return nil
	}
	return p.Rights.Renew()
}

// owing is a position that a log must have made safe.
type owing struct {
	log *ulog.Log
	at  ulog.Stamp
}

func (p *Pending) add(log *ulog.Log, at ulog.Stamp) {
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
	p.more = append(p.more, owing{log, at})
}

// Wait returns when every collected update is safe, and forgets them. After an error nothing collected may be
// acknowledged: the log has failed for good.
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

// wait makes one position safe and forgets it, whatever happened before.
func (o *owing) wait(first error) error {
	if o.log == nil {
		return first
	}
	err := o.log.Wait(o.at)
	*o = owing{}
	if first != nil {
		return first
	}
	return err
}
