package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gotycoon/cluster/election"
)

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
