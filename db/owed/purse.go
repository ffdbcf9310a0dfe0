package owed

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
