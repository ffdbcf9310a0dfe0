package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gotycoon/cluster/election"
)

// How a member becomes the primary.
//
//	the elector says: this member leads term 7
//	  seal      the members with data stop following, for ever: what each has is final
//	  choose    the one that has most. Is it another: it gets the leadership, and begins anew
//	  appoint   the State says: term 7, this member, from what it has now
//	  open      the first update of the term is written, and is on as many followers as the rule
//	            says. So whatever clients can read here survives the next failover too
//	  lead      clients are answered while there is a lease
//
// A failure at any step leaves a cluster without a primary, and this member, or the next that
// leads, begins again.

const (
	// sealTimeout limits the wait for seals. Members that are there answer within milliseconds.
	sealTimeout = time.Second
	// sealGrace is how long others are waited for when enough are sealed: one of them may have
	// more.
	sealGrace = 50 * time.Millisecond
	// transferTimeout and proposeTimeout limit the elector.
	transferTimeout = 3 * time.Second
	proposeTimeout  = 3 * time.Second
)

// sealed is what a member had when it was sealed.
type sealed struct {
	member election.Member
	has    Inventory
	at     Position
	err    error // it was not sealed, or does not count
}

// takeOver makes this member, or the one that has more, the primary of a term that this member
// leads.
func (n *Node) takeOver(term uint64, st election.State) error {
	if st.Term == term {
		if st.Primary != n.opts.Name {
			return nil // the elector has told of the leadership late
		}
		return n.giveAway(st, n.open(term, st))
	}
	all := n.sealAll(term, st)
	for i := range all {
		if s := &all[i]; s.member.Name == n.opts.Name && s.err != nil { // the disk is full, perhaps
			n.failures = mostFailures
			return n.giveAway(st, fmt.Errorf("sealing this member: %w", s.err))
		}
	}
	best, err := choose(st, all, n.opts.Name)
	if err != nil {
		return err
	}
	if best.member.Name != n.opts.Name {
		n.opts.Logger.Info(fmt.Sprintf("cluster: %s has more than this member (term %d, stamp %d) and becomes the primary", best.member.Name, best.at.Term, best.at.Stamp))
		return n.transfer(best.member.Name)
	}
	ctx, cancel := context.WithTimeout(n.ctx, proposeTimeout)
	defer cancel()
	err = n.elector.Propose(ctx, term, func(now election.State) (election.State, error) {
		if now.Term != st.Term {
			return now, errors.New("another primary has been appointed")
		}
		return appoint(now, term, best, all, n.opts.Required), nil
	})
	if err != nil {
		return fmt.Errorf("appointing this member: %w", err)
	}
	st = n.elector.State()
	return n.giveAway(st, n.open(term, st))
}

// mostFailures is how often a member tries to begin its term before another one is to lead.
const mostFailures = 10

// giveAway hands the leadership to another member when this one fails again and again to begin its
// term, because its disk is full for example. Only run calls it.
func (n *Node) giveAway(st election.State, err error) error {
	if err == nil {
		n.failures = 0
		return nil
	}
	if n.failures++; n.failures < mostFailures {
		return err
	}
	n.failures = 0
	for _, m := range st.Members {
		if m.Name == n.opts.Name || m.Witness || m.Joining {
			continue
		}
		if n.transfer(m.Name) == nil {
			break
		}
	}
	return err
}

// transfer hands the leadership to another member. A member that has just started answers a seal
// before the elector has heard of it: to wait for that moment is quicker than to begin anew.
func (n *Node) transfer(to string) error {
	soon, cancel := context.WithTimeout(n.ctx, lookEvery)
	defer cancel()
	_ = n.awaitHeard(soon, to) // if not, the elector's error says more
	ctx, cancel := context.WithTimeout(n.ctx, transferTimeout)
	defer cancel()
	return n.elector.Transfer(ctx, to)
}

// sealAll seals the members with data and returns what each of them has.
func (n *Node) sealAll(term uint64, st election.State) []sealed {
	ctx, cancel := context.WithTimeout(n.ctx, sealTimeout)
	defer cancel()
	answers := make(chan sealed)
	var waiting int
	for _, m := range st.Members {
		if m.Witness || m.Joining {
			continue
		}
		waiting++
		go func() {
			s := sealed{member: m}
			if m.Name == n.opts.Name {
				s.has, s.err = n.sealSelf(term)
			} else {
				s.err = n.mesh.call(ctx, m.Name, callSeal, term, &s.has)
			}
			if cause := errors.Unwrap(s.err); errors.Is(cause, errAway) {
				s.err = cause // without the member's name, which is known
			}
			answers <- s
		}()
	}
	var all []sealed
	for ; waiting > 0; waiting-- {
		s := <-answers
		if s.err == nil {
			s.at = history(st.History).locate(s.member.Name, s.has.Marks)
		}
		if all = append(all, s); s.err == nil && plenty(st, all) {
			time.AfterFunc(sealGrace, cancel)
		}
	}
	return all
}

// sealSelf seals this member. It waits for its disk for a while only: if this member cannot take
// over, another one is to try.
func (n *Node) sealSelf(term uint64) (Inventory, error) {
	ctx, cancel := context.WithTimeout(n.ctx, n.opts.DiskTimeout)
	defer cancel()
	return unlessHung(ctx, n, func() (Inventory, error) { return n.seal(ctx, term) })
}

// appoint returns the State in which the best of the sealed members is the primary of a term.
func appoint(st election.State, term uint64, best *sealed, all []sealed, required int) election.State {
	a := election.Appointment{Term: term, Primary: best.member.Name, Log: best.has.Log, From: best.at.Stamp, Start: best.has.Last + 1,
		Base: best.has.Base, BaseFrom: best.has.BaseFrom, BaseOwn: best.has.BaseOwn}
	if from, ok := history(st.History).find(best.at.Term); ok {
		a.FromLog = from.Log
	}
	if st.Term > 0 {
		required = st.Required
	}
	next := st.Appoint(a, min(required, withData(st)-1))
	for i := range next.Members {
		for j := range all {
			if all[j].err == nil && all[j].member.Name == next.Members[i].Name {
				next.Members[i].SID = all[j].has.SID
			}
		}
	}
	return next
}

// withData returns how many members have data and a vote.
func withData(st election.State) (n int) {
	for _, m := range st.Members {
		if !m.Witness && !m.Joining {
			n++
		}
	}
	return n
}
