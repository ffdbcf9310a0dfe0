package owed

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
