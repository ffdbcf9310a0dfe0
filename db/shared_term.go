package db

import (
	"context"
	"fmt"
	"time"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
)

// What a server claims in an engine belongs to a term of a lease that the server holds, one for all
// of its databases. When the server dies its lease ends, and the others give its records back
// (shared_abandoned.go). A server that could not renew its lease goes on with another term: what it
// had claimed before is in the hands of others, and its clients are told so when they finish it.
//
// Leases have the names claims/0, claims/1 and so on, of which each server takes one that is free.
// So the engine has no more of them than there ever were servers at a time.

// holdWithin is how long a server waits for a lease that was free a moment ago.
const holdWithin = 2 * time.Second

func (t *terms) init() {
	t.wake, t.begun = make(chan struct{}, 1), make(chan struct{})
}

// nudge wakes the goroutine that looks after the claims.
func (t *terms) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// next returns the number of a new claim. It waits until the server has a lease.
func (t *terms) next(ctx context.Context) (engine.ClaimID, error) {
	for {
		id, begun := t.number()
		if begun == nil {
			return id, nil
		}
		t.nudge()
		select {
		case <-begun:
		case <-ctx.Done():
			return id, &engine.Error{Kind: engine.Undone, Err: fmt.Errorf("no lease for claims: %w", ctx.Err())}
		}
	}
}

// number returns the number of a new claim, or what is closed when a term begins.
func (t *terms) number() (id engine.ClaimID, begun <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.lasts() {
		t.wanted = true
		return id, t.begun
	}
	t.last++
	return engine.ClaimID{By: t.term, Number: t.last}, nil
}

// lasts reports whether the server has a lease. The caller holds t.mu.
func (t *terms) lasts() bool {
	if t.lost == nil {
		return false
	}
	select {
	case <-t.lost:
		return false
	default:
		return true
	}
}

// over notes that the engine says a term has ended, which its holder may notice later.
func (t *terms) over(term engine.Term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.term == term && t.end != nil {
		t.end()
		t.lost = nil
	}
}

// missing reports whether somebody waits for a term.
func (t *terms) missing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wanted && !t.lasts()
}

// hold takes a lease that nobody has, and keeps it until ctx ends.
func (t *terms) hold(ctx context.Context, g *gather.Gather, leases engine.Leases) error {
	for i := 0; ; i++ {
		name := fmt.Sprintf("claims/%d", i)
		holder, err := gather.Ask(ctx, g, func(ctx context.Context) (string, error) {
			holder, _, err := leases.Holder(ctx, name)
			return holder, err
		})
		if err != nil {
			return err
		}
		if holder != "" {
			continue
		}
		holding, end := context.WithCancel(ctx)
		limit := time.AfterFunc(holdWithin, end)
		term, lost, err := leases.Hold(holding, name)
		inTime := limit.Stop()
		if err == nil && inTime {
			t.begin(term, lost, end)
			return nil
		}
		end()
		if inTime || ctx.Err() != nil {
			return err
		}
	}
}

// begin notes the lease that the server has from now on.
func (t *terms) begin(term engine.Term, lost <-chan struct{}, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.term, t.lost, t.end, t.wanted = term, lost, end, false
	close(t.begun)
	t.begun = make(chan struct{})
}

// Lease returns the latest term of the lease in which this server claims records, such as messages
// of queues, and whether it lasts. It is the zero Term where the server has claimed nothing so far.
func (c *Catalog) Lease() (term engine.Term, lasts bool) {
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	return c.claims.term, c.claims.lasts()
}

// owe has a claim given back soon.
func (t *terms) owe(d debt) {
	t.note(d)
	t.nudge()
}

// note puts a debt into the list.
func (t *terms) note(d debt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.debts = append(t.debts, d)
}

// debt takes the oldest debt out of the list.
func (t *terms) debt() (d debt, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.debts) == 0 {
		return d, false
	}
	d, t.debts = t.debts[0], t.debts[1:]
	return d, true
}
