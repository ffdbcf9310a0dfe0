package owed

import "gotycoon/ulog"

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

// waiting is Pending.Waiting for one log.
func (o *debt) waiting() Wait {
	if o.upTo != 0 {
		if by := o.log.Confirmer(true); by != nil && by.Confirmed(o.usual, o.asked) < o.upTo {
			return Servers
		}
	}
	switch {
	case o.at == 0 || o.log.Acked() >= o.at:
		return Nothing
	case o.log.SyncsEach():
		return Disk
	}
	return Log
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
