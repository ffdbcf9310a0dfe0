package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// catchUp limits the wait for the next primary before clients have to wait, and handOver the
	// wait while they do.
	catchUp  = 10 * time.Second
	handOver = 2 * time.Second
)

// switchOver hands over to another member. Clients are refused for the time between Shut and the
// first answer of the next primary. Nothing is acknowledged in between, and the next primary has
// everything that was.
func (n *Node) switchOver(ctx context.Context, to string) error {
	m, ok := n.elector.State().Member(to)
	switch {
	case !ok:
		return mistake("%s is no member; the members are %s", to, names(n.elector.State()))
	case m.Witness || m.Joining:
		return mistake("%s cannot be the primary: it is a witness, or has not caught up yet", to)
	case to == n.opts.Name:
		return nil
	}
	early, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	has, err := unlessHung(early, n, n.opts.Data.Inventory)
	if err != nil {
		return err
	}
	if err := n.opts.Data.Caught(early, m.SID, has.Last); err != nil {
		return fmt.Errorf("%s is too far behind to take over: %w", to, err)
	}
	if err := n.awaitHeard(early, to); err != nil {
		return fmt.Errorf("%s does not answer the other members: %w", to, err)
	}
	n.mu.Lock()
	if n.role != Leading {
		n.mu.Unlock()
		return ErrNotPrimary
	}
	n.become(Draining, n.term)
	term := n.term
	n.mu.Unlock()
	late, cancel := context.WithTimeout(ctx, handOver)
	defer cancel()
	last, err := n.shut(late)
	if err == nil {
		err = n.opts.Data.Caught(late, m.SID, last)
	}
	if err != nil {
		n.resume(term)
	}
	n.mu.Lock()
	switch {
	case n.term != term || !n.active():
		n.mu.Unlock()
		return errors.New("the leadership was lost meanwhile")
	case err != nil:
		n.mu.Unlock()
		return fmt.Errorf("%s did not catch up in time, this member remains the primary: %w", to, err)
	}
	n.stepDown(fmt.Errorf("%s takes over, as an operator wants", to))
	n.handing = true
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.handing = false
	}()
	ctx, cancel = context.WithTimeout(n.ctx, transferTimeout)
	defer cancel()
	if err := n.elector.Transfer(ctx, to); err != nil {
		return fmt.Errorf("handing over to %s: %w", to, err)
	}
	return n.awaitPrimary(ctx, to, term)
}

// hearEvery is the pause between two looks whether a member was heard.
const hearEvery = 10 * time.Millisecond

// awaitHeard returns nil when the leadership can be handed to a member that is there. To find out
// only after this member has ceased to serve would cost clients an election.
func (n *Node) awaitHeard(ctx context.Context, name string) error {
	tick := time.NewTicker(hearEvery)
	defer tick.Stop()
	for !n.elector.Hears(name) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// shut refuses updates of clients, and returns the end of the log.
func (n *Node) shut(ctx context.Context) (last uint64, err error) {
	return unlessHung(ctx, n, func() (uint64, error) {
		if err := n.beginWork(ctx); err != nil {
			return 0, err
		}
		defer n.endWork()
		return n.opts.Data.Shut()
	})
}

// awaitPrimary returns nil when a member is appointed as the primary of a term after the given one.
// The member may hand on the leadership to another one that has more.
func (n *Node) awaitPrimary(ctx context.Context, name string, after uint64) error {
	for {
		changed := n.elector.Changed()
		if st := n.elector.State(); st.Term > after {
			if st.Primary == name {
				return nil
			}
			return fmt.Errorf("%s has become the primary instead of %s, because it had more", st.Primary, name)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s has the leadership, and is not the primary yet: 'ktremotemgr cluster status' tells", name)
		}
	}
}

// Resign hands over to a member that has everything, if this member is the primary. It is for a
// server that is about to stop: clients then wait for less than they would for an election.
func (n *Node) Resign(ctx context.Context) {
	if !n.beginOrder(ctx) {
		return
	}
	defer n.endOrder()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.leaving = true
	}()
	for _, m := range n.elector.State().Members {
		n.mu.Lock()
		leads := n.role == Leading
		n.mu.Unlock()
		if !leads || ctx.Err() != nil || n.Stalled() >= shownStall {
			break
		}
		if m.Name == n.opts.Name || m.Witness || m.Joining {
			continue
		}
		each, cancel := context.WithTimeout(ctx, handOver)
		if err := n.switchOver(each, m.Name); err != nil {
			n.opts.Logger.Info("cluster: handing over: " + err.Error())
		}
		cancel()
	}
	hangs := func() bool { return n.Stalled() >= shownStall }
	if _, leads := n.elector.Leading(); leads && hangs() { // what waits for the disk cannot be handed over
		if err := n.handOff(errors.New("this server stops while its disk hangs"), anyMember, hangs); err != nil {
			n.tell(err)
		}
	}
}
