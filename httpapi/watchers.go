package httpapi

import (
	"errors"
	"fmt"
	"sync"

	"gotycoon/access"
	"gotycoon/internal/opcount"
)

var errManyWatches = errors.New("too many clients watch this server now (-max-watches): come again later, or watch another server")

// fewWatches is how many watches a client may have even while others have nearly all places.
const fewWatches = 16

// watchers are the places for watches. So that no client takes all of them, a client may have as
// many as are free then, and a few in any case. A program that is alone so has half of the places,
// however many processes it has; the next one has half of the rest.
//
// Who has shown a user, token or certificate counts by that name, others by their address: see
// access.Visitor.Who.
type watchers struct {
	most   int
	counts *opcount.Counts

	mu  sync.Mutex // protects the fields below
	all int
	of  map[string]int // by client; none with 0
}

// enter takes a place. The caller calls leave when the watch has ended.
func (w *watchers) enter(v *access.Visitor, c access.Client) (leave func(), err error) {
	who := v.Who(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	free, has := w.most-w.all, w.of[who]
	switch {
	case free <= 0:
		err = errManyWatches
	case has >= fewWatches && has >= free:
		err = fmt.Errorf("%w: %s has %d of them, and the last %d are for others", errManyWatches, who, has, free)
	}
	if err != nil {
		w.counts.WatchesRefused.Add(1)
		return nil, err
	}
	w.add(who, 1)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.add(who, -1)
	}, nil
}

// add counts the watches of a client. mu is held.
func (w *watchers) add(who string, n int) {
	w.all += n
	w.counts.Watches.Add(int64(n))
	if w.of[who] += n; w.of[who] == 0 {
		delete(w.of, who)
	}
}
