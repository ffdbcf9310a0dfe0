package owed

import "errors"

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
