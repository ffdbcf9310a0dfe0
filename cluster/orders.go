package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gotycoon/cluster/election"
)

// The calls between members.
const (
	callSeal   = "seal"   // term → Inventory
	callStatus = "status" // → Status
	callOrder  = "order"  // Order → {}, to the primary
)

const (
	// orderTimeout limits what an operator asks for.
	orderTimeout = 60 * time.Second
	// catchUp limits the wait for the next primary before clients have to wait, and handOver the
	// wait while they do.
	catchUp  = 10 * time.Second
	handOver = 2 * time.Second
)

// Order is what an operator wants of the cluster. The primary carries it out.
type Order struct {
	Do     string          `json:"do"` // one of the constants
	Name   string          `json:"name,omitempty"`
	Member election.Member `json:"member,omitzero"` // of Add
	Number int             `json:"number,omitempty"`
}

// What an Order can ask for.
const (
	Switch  = "switchover" // Name becomes the primary
	Add     = "add"        // Member becomes a member
	Remove  = "remove"     // Name is no member any more
	Require = "require"    // updates need Number followers
)

// Mistake is the error of an order that cannot be carried out as it was given. Other errors of
// orders are about the present moment.
type Mistake struct{ text string }

// Error says what is wrong.
func (m *Mistake) Error() string { return m.text }

func mistake(format string, args ...any) error { return &Mistake{fmt.Sprintf(format, args...)} }

// Do carries out an order, or has the primary do so.
func (n *Node) Do(ctx context.Context, o Order) error {
	leader, _, known := n.elector.Leader()
	switch {
	case !known:
		return errors.New("no member leads the cluster now")
	case leader == n.opts.Name:
		return n.carryOut(ctx, o)
	}
	return n.mesh.call(ctx, leader, callOrder, o, new(struct{}))
}

func (n *Node) carryOut(ctx context.Context, o Order) error {
	if !n.beginOrder(ctx) {
		return errBusy
	}
	defer n.endOrder()
	n.mu.Lock()
	term, role := n.term, n.role
	n.mu.Unlock()
	// Where followers are gone for good, fewer of them is the way out.
	if role != Leading && (role != Opening || o.Do != Require) {
		return errors.New("there is no primary now; try again in a moment")
	}
	defer n.poke()
	switch o.Do {
	case Switch:
		return n.switchOver(ctx, o.Name)
	case Add:
		return n.add(ctx, term, o.Member)
	case Remove:
		return n.remove(ctx, term, o.Name)
	case Require:
		return n.require(ctx, term, o.Number)
	}
	return mistake("the order %q is unknown to this version", o.Do)
}

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

// add makes a server a member, if it is there: a member that never comes would count for the
// majority.
func (n *Node) add(ctx context.Context, term uint64, m election.Member) error {
	if _, known := n.elector.State().Member(m.Name); known {
		return mistake("%s is a member already", m.Name)
	}
	short, cancel := context.WithTimeout(ctx, handOver)
	defer cancel()
	if err := n.mesh.call(short, m.Name, callStatus, nil, new(Status)); err != nil {
		return mistake("the new member does not answer; start it first with -join and -advertise %s: %v", m.Addr, err)
	}
	return n.elector.AddMember(ctx, term, m)
}

// remove takes a member out. What was acknowledged must first be on enough of the others: an
// update that only the removed member has would be lost with it.
func (n *Node) remove(ctx context.Context, term uint64, name string) error {
	st := n.elector.State()
	m, ok := st.Member(name)
	switch {
	case !ok:
		return mistake("%s is no member; the members are %s", name, names(st))
	case name == n.opts.Name:
		return mistake("%s is the primary: switch over to another one first", name)
	case m.Witness:
		return n.elector.RemoveMember(ctx, term, name)
	case !m.Joining && st.Required > withData(st)-2:
		return mistake("updates need %d followers, and without %s there are only %d: ask for fewer first ('ktremotemgr cluster require')",
			st.Required, name, withData(st)-2)
	}
	stricter := func(rule Rule) Rule { // also for a member that joins: it may be given the vote before it is removed
		rule.Counts = slices.DeleteFunc(rule.Counts, func(sid uint16) bool { return sid == m.SID })
		return rule
	}
	return n.byRule(ctx, term, stricter, func() error { return n.elector.RemoveMember(ctx, term, name) })
}

// require changes how many followers must have an update. For more of them, what is acknowledged
// must be there first, because from then on fewer members are asked before a takeover. For fewer,
// all members must know it before the first update is acknowledged by so few.
func (n *Node) require(ctx context.Context, term uint64, required int) error {
	st := n.elector.State()
	if required < 0 || required > withData(st)-1 {
		return mistake("the number of followers is from 0 to %d", withData(st)-1)
	}
	propose := func() error {
		return n.elector.Propose(ctx, term, func(now election.State) (election.State, error) {
			if now.Term != term {
				return now, ErrNotPrimary
			}
			now.Required = required
			return now, nil
		})
	}
	if required <= st.Required {
		return propose()
	}
	stricter := func(rule Rule) Rule {
		rule.Required = required
		return rule
	}
	return n.byRule(ctx, term, stricter, propose)
}

var errUnsettled = errors.New("it is unknown whether the latest change was committed: switch over to another member, and look what the members are then")

// byRule goes over to a stricter rule, has everything that is in the log now fulfil it, and changes
// the State. Then the rule of the State counts again, at the next look. Clients wait by the
// stricter rule only when it was fulfilled just before: an order that cannot be carried out now
// must not stop them. If nobody knows whether the change was committed, it may still be: the
// stricter rule then counts until the end of the term.
func (n *Node) byRule(ctx context.Context, term uint64, stricter func(Rule) Rule, change func() error) (err error) {
	n.learn() // a member that has joined just now may be among those that count
	early, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.unsettled = n.unsettled || n.stricter != nil && errors.Is(err, election.ErrUnknown)
		if !n.unsettled {
			n.stricter = nil
		}
	}()
	for _, inForce := range []bool{false, true} {
		rule, err := n.goStricter(term, stricter, inForce)
		if err != nil {
			return err
		}
		has, err := unlessHung(early, n, n.opts.Data.Inventory)
		if err == nil {
			err = n.opts.Data.Fulfilled(early, rule, has.Last)
		}
		if err != nil {
			return fmt.Errorf("the other members do not have everything yet: %w", err)
		}
	}
	return change()
}

// goStricter returns the stricter rule, and puts it in force if asked to.
func (n *Node) goStricter(term uint64, stricter func(Rule) Rule, inForce bool) (Rule, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.term != term || n.role != Leading && n.role != Opening:
		return Rule{}, ErrNotPrimary // the rule would bind a follower
	case n.unsettled:
		return Rule{}, errUnsettled
	}
	rule := stricter(ruleOf(n.elector.State()))
	if inForce {
		n.stricter = stricter
		n.opts.Data.Require(rule)
	}
	return rule, nil
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
		n.handOff(errors.New("this server stops while its disk hangs"), hangs)
	}
}

var errBusy = errors.New("the primary is carrying out another order")

// beginOrder waits until no other order is carried out, unless ctx ends before.
func (n *Node) beginOrder(ctx context.Context) bool {
	select {
	case n.ordering <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (n *Node) endOrder() { <-n.ordering }
