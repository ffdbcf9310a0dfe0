package db

// Heed is asked by an operation that may take long whether it is to go on: at least each 10 ms, also within one key. An error ends
// the operation, which returns this error as it is and leaves the database whole. A nil Heed lets the operation take its time.
//
// Whoever is asked decides what the reasons are: the client has gone, the time of the request is over, the server stops.
type Heed func() error

// now asks.
func (h Heed) now() error {
	if h == nil {
		return nil
	}
	return h()
}

// ended is what a Heed has answered, on its way through a store.
type ended struct{ error }

// asking is h as a store asks it; nil for none.
func (h Heed) asking() func() error {
	if h == nil {
		return nil
	}
	return func() error {
		if err := h(); err != nil {
			return ended{err}
		}
		return nil
	}
}

// Heeding asks a Heed from within a loop whose rounds are too short for that, once for so many steps of work. Its zero value, and nil,
// ask nobody. It belongs to one goroutine.
type Heeding struct {
	heed  Heed
	steps int   // since heed was asked
	err   error // what heed has answered; the work has to end
}

// heedSteps is the work between two questions: half a million bytes compared, or as many cells of a table of distances, take less
// than 5 ms on a slow machine.
const heedSteps = 1 << 19

// NewHeeding returns what asks h.
func NewHeeding(h Heed) *Heeding { return &Heeding{heed: h} }

// asking is the Heed as a store asks it.
func (h *Heeding) asking() func() error {
	if h == nil {
		return nil
	}
	return h.heed.asking()
}

// Work counts n steps and reports whether the work may go on.
func (h *Heeding) Work(n int) bool {
	if h == nil || h.heed == nil {
		return true
	}
	if n >= heedSteps {
		return h.now()
	}
	if h.steps += n; h.steps >= heedSteps {
		return h.now()
	}
	return h.err == nil
}

// now asks at once.
func (h *Heeding) now() bool {
	if h == nil {
		return true
	}
	if h.err == nil {
		h.steps, h.err = 0, h.heed.now()
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
