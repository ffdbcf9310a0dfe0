package replication

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/ulog"
)

// Succeed follows a master that a cluster has elected. Unlike Tune it trusts the caller, which
// knows the history of the cluster's updates.
func (f *Follower) Succeed(host string, port int, e Election) { f.turn(host, port, nil, nil, &e) }

// succeed prepares the place for the master that Succeed has named; e is nil after Tune.
func (f *Follower) succeed(e *Election) {
	if f.elect = (Election{}); e == nil {
		return
	}
	if f.elect = *e; e.From == nil {
		return
	}
	f.place.position = *e.From
	f.place.expectNothing()
	f.place.sidKnown = false
	// The history of the cluster has the records of the services too.
	if part := f.place.part(db.ServicesIndex); part != nil && !part.begun() {
		f.place.without(func(i uint16) bool { return i != db.ServicesIndex })
		f.place.services = true
	}
	f.status.position.Store(uint64(f.place.position))
	f.save()
}

// confirmTerm returns an error unless the master still is the primary of the term in which copies
// were begun. Then it has been that all the time: nobody leads a term twice.
func (f *Follower) confirmTerm(ctx context.Context, m Master) error {
	if f.elect.Term == 0 {
		return nil
	}
	p, err := f.connect(ctx, m)
	if err != nil {
		return err
	}
	defer p.close()
	first, err := p.first()
	if err != nil {
		return err
	}
	if hello, _ := first.Hello(); hello.Term != f.elect.Term {
		return fmt.Errorf("%w: it leads term %d, and term %d is wanted", errTerm, hello.Term, f.elect.Term)
	}
	return nil
}

// endCopies notes that copies are here. whole says that all databases were copied after the Hello.
func (f *Follower) endCopies(h *frame.Hello, whole bool) {
	place, shared := &f.place, f.shared(h)
	newest := place.position
	for _, part := range place.parts {
		newest = max(newest, part.at)
	}
	all := len(place.parts) >= len(shared)
	place.finishCopies(all)
	if whole {
		kept := slices.ContainsFunc(shared, func(i uint16) bool { return f.opts.Catalog.Numbered(int(i)).Info().KeepsVersions })
		place.inherit(h, kept, copyLog(*h, f.ownLog))
	}
	place.master, place.amends = ulog.LogKey(h.Log), amendsNone
	if log := f.opts.Catalog.Log(); log != nil {
		place.base = Base{place.master, newest, log.Last()}
	}
	if all {
		place.upToCopies()
	}
}

// Halt ends the replication and returns when nothing of the master is stored or acknowledged any
// more. Start has been called.
func (f *Follower) Halt(ctx context.Context) error {
	if f.Master().Host != "" {
		f.Tune("", 0, nil, nil)
	}
	for {
		f.mu.Lock()
		if f.rest.ended == f.rest.ordered {
			f.mu.Unlock()
			return nil
		}
		if f.rest.changed == nil {
			f.rest.changed = make(chan struct{})
		}
		changed := f.rest.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the replication does not end: %w", ctx.Err())
		}
	}
}

// resting notes that no round is under way.
func (f *Follower) resting() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rest.ended, f.rest.at = f.rest.begun, f.place.standing()
	if f.rest.changed != nil {
		close(f.rest.changed)
		f.rest.changed = nil
	}
}

// Standing returns what was here when the replication last rested.
func (f *Follower) Standing() Standing {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rest.at
}

func (p *place) standing() Standing {
	partial := slices.ContainsFunc(p.parts, part.begun) || p.amends == amendsNone && p.lacksData()
	return Standing{Master: p.master, Position: p.position, Marks: maps.Clone(p.marks), Partial: partial, Base: p.base}
}

// Lineage returns where the updates in this server's log begin.
func (f *Follower) Lineage() Lineage {
	p, err := decodePlace(*f.known.Load())
	if err != nil { // which this follower has encoded
		return Lineage{Partial: true}
	}
	return Lineage{p.base, p.lacksData() || slices.ContainsFunc(p.parts, part.begun)}
}
