package election

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// A board shows what the methods of an Elector return that never wait.
type board struct {
	clock Clock
	shown atomic.Pointer[view]
}

// A view is what is shown at a time. It is immutable.
type view struct {
	leads   bool
	term    uint64
	leader  string // "" is unknown
	lease   time.Time
	state   State
	err     error
	trouble string
	changed chan struct{}
}

func newBoard(clock Clock) *board {
	b := &board{clock: clock}
	b.shown.Store(&view{changed: make(chan struct{})})
	return b
}

// show shows another view, and tells whoever waits for a change if it is one; a renewed lease is
// none. One caller at a time.
func (b *board) show(v view) {
	old := b.shown.Load()
	v.changed = old.changed
	same := v.leads == old.leads && v.term == old.term && v.leader == old.leader &&
		v.state.Version == old.state.Version && v.err == old.err
	if same {
		b.shown.Store(&v)
		return
	}
	v.changed = make(chan struct{})
	b.shown.Store(&v)
	close(old.changed)
}

// Leading implements Elector.
func (b *board) Leading() (uint64, bool) {
	v := b.shown.Load()
	return v.term, v.leads
}

// Leader implements Elector.
func (b *board) Leader() (string, uint64, bool) {
	v := b.shown.Load()
	return v.leader, v.term, v.leader != ""
}

// Lease implements Elector.
func (b *board) Lease() (uint64, time.Time) {
	v := b.shown.Load()
	if !v.leads || !b.clock.Now().Before(v.lease) {
		return 0, time.Time{}
	}
	return v.term, v.lease
}

// State implements Elector.
func (b *board) State() State { return b.shown.Load().state.clone() }

// Changed implements Elector.
func (b *board) Changed() <-chan struct{} { return b.shown.Load().changed }

// Err implements Elector.
func (b *board) Err() error { return b.shown.Load().err }

// Trouble implements Elector.
func (b *board) Trouble() string { return b.shown.Load().trouble }

// awaitLeader waits until a member leads a later term than the given one.
func (b *board) awaitLeader(ctx context.Context, name string, term uint64) error {
	for {
		changed := b.Changed()
		leader, now, known := b.Leader()
		switch {
		case b.Err() != nil:
			return b.Err()
		case now > term && known && leader != name:
			return fmt.Errorf("election: %s leads instead of %s", leader, name)
		case now > term && known:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("election: %s did not take over: %w", name, ctx.Err())
		}
	}
}

// A turn is held by one change or transfer at a time.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: another change is under way: %w", ErrNotLeading, ctx.Err())
	}
}

// try takes the turn if it is free, and reports whether it was.
func (t turn) try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t turn) pass() { <-t }
