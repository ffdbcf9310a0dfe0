package db

import (
	"context"
	"math/rand/v2"
	"time"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
)

const (
	// how often a server looks for claims of servers that have ended; a little more or less
	lookAbandoned = time.Second
	claimsAgain   = 100 * time.Millisecond // after the engine has not answered
	// claims of one look, and the bytes of their values
	abandonedLimit = 64
	abandonedBytes = 4 << 20
)

// tendClaims looks after what was claimed in the engine: it holds this server's lease from the
// first claim on, gives back what a client could not, and gives back what servers have left that
// ended.
func (c *Catalog) tendClaims() {
	if c.groups == nil || c.opts.ReadOnly || c.opts.Shared.Claims() == nil {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	defer end() // gives the lease back: what is still owed is everybody's then
	more := false
	for {
		wait := lookAbandoned/2 + rand.N(lookAbandoned)
		if more {
			wait = 0
		}
		pause := time.NewTimer(wait)
		due := false
		select {
		case <-c.quit:
		case <-c.claims.wake:
		case <-pause.C:
			due = true
		}
		pause.Stop()
		select {
		case <-c.quit: // first of all, however often it is woken
			c.payDebts()
			return
		default:
		}
		if c.claims.missing() {
			if err := c.claims.hold(ctx, c.groups, c.opts.Shared.Leases()); err != nil {
				time.AfterFunc(claimsAgain, c.claims.nudge)
			}
		}
		c.payDebts()
		if due {
			more = c.giveBackAbandoned()
		}
	}
}

// payDebts gives back some of what clients have left, until the engine does not answer.
func (c *Catalog) payDebts() {
	for range abandonedLimit {
		d, ok := c.claims.debt()
		if !ok {
			return
		}
		if err := d.pay(); err != nil {
			c.claims.note(d)
			time.AfterFunc(claimsAgain, c.claims.nudge)
			return
		}
	}
	c.claims.nudge()
}

// pay settles what is not known, and gives back what was claimed.
func (d *debt) pay() error {
	if d.claim == nil {
		found, err := gather.Ask(context.Background(), d.of.groups, func(ctx context.Context) (found bool, err error) {
			rec, found, err := d.of.engine.Claims().Settle(ctx, d.id)
			if found {
				d.claim = &engine.Claimed{ID: d.id, Record: rec}
			}
			return found, err
		})
		if err != nil || !found {
			return err
		}
	}
	return d.of.back(d.claim)
}

// giveBackAbandoned gives back some of what was claimed in terms that have ended, and reports
// whether there may be more. That another server is at it too does not matter.
func (c *Catalog) giveBackAbandoned() (more bool) {
	all, err := gather.Ask(context.Background(), c.groups, func(ctx context.Context) ([]engine.Claimed, error) {
		return c.opts.Shared.Claims().Abandoned(ctx, abandonedLimit, abandonedBytes)
	})
	for i := range all {
		if d := c.DB(int(all[i].DB)); d != nil && d.shared.back(&all[i]) == nil {
			more = true
		}
	}
	return more && err == nil // else the next time
}
