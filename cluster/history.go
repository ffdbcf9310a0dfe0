package cluster

import (
	"math"

	"gotycoon/cluster/election"
)

// Position says how much of the cluster's data a member has: every update of the cluster up to the
// one with the stamp Stamp in the log of the term's primary, and nothing of later terms. Stamps of
// one term are compared; stamps of different terms are not.
type Position struct {
	Term  uint64 // newest term of which the member has updates; 0: none
	Stamp uint64 // newest update of that term that it has, as its primary's log has it
}

// Before reports whether a member at q has more than one at p.
func (p Position) Before(q Position) bool {
	return p.Term < q.Term || p.Term == q.Term && p.Stamp < q.Stamp
}

// Branch is where a member's data leave the history of the newest term.
type Branch struct {
	// At is the last position that the member and the history have in common. Whatever the member
	// has of At.Term behind At.Stamp, and of later terms, was never acknowledged.
	At Position
	// Clean: the member has nothing beyond At.
	Clean bool
	// Known: the history reaches back to where the two part. Otherwise At says nothing.
	Known bool
}

// history is the list of appointments, oldest first.
type history []election.Appointment

// find returns the appointment of a term.
func (h history) find(term uint64) (a election.Appointment, ok bool) {
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].Term == term {
			return h[i], true
		}
	}
	return a, false
}

// branch compares the position p of a member with the newest term. A term begins where its primary
// was when it was appointed, which may be in the middle of the former term, or in an earlier one:
//
//	term 1  a ──●──●──●──●──●            primary a: the last two updates reached nobody
//	                   │
//	term 2             └──●──●──●        primary b, begins at the third update of a
//	                            │
//	term 4                      └──●     primary c; the primary of term 3 reached nobody
//
// a comes back at (1, fifth update): it leaves the history at (1, third update).
func (h history) branch(p Position) Branch {
	if len(h) == 0 || p.Term == 0 {
		return Branch{At: Position{}, Clean: p.Term == 0, Known: true}
	}
	limits := h.limits()
	at := p
	for {
		if limit, in := limits[at.Term]; in {
			at.Stamp = min(at.Stamp, limit)
			return Branch{At: at, Clean: at == p, Known: true}
		}
		a, ok := h.find(at.Term)
		if !ok {
			return Branch{}
		}
		at = h.origin(a)
		if at.Term == 0 {
			return Branch{At: at, Known: true}
		}
	}
}

// limits returns, for each term that the newest one goes back to, the last stamp that belongs to
// the history.
func (h history) limits() map[uint64]uint64 {
	limits := map[uint64]uint64{}
	at := Position{Term: h[len(h)-1].Term, Stamp: math.MaxUint64}
	for at.Term != 0 {
		limits[at.Term] = at.Stamp
		a, ok := h.find(at.Term)
		if !ok {
			break
		}
		at = h.origin(a)
	}
	return limits
}

// origin returns the position from which an appointment begins.
func (h history) origin(a election.Appointment) Position {
	return Position{Term: h.termOf(a.FromLog, a.From, a.Term), Stamp: a.From}
}

// termOf returns the term below before in which the update with a stamp in a log was made, 0 for an
// update from before the cluster. A server can be the primary in several terms.
func (h history) termOf(log, stamp, before uint64) (term uint64) {
	for i := range h {
		if a := &h[i]; a.Log == log && a.Start <= stamp && a.Term < before {
			term = a.Term
		}
	}
	return term
}

// lost returns the function that tells which updates do not belong to the history of the newest
// term: those of a primary of the cluster behind the end of its part. Other updates are from before
// the cluster.
func (h history) lost() func(log, stamp uint64) bool {
	limits := h.limits()
	return func(log, stamp uint64) bool {
		term := h.termOf(log, stamp, math.MaxUint64)
		return term != 0 && stamp > limits[term]
	}
}

// Made returns the function that tells which updates were made in a term of the cluster, by the log
// and the stamp of their origin. Other updates are from before the cluster.
func (n *Node) Made() func(log, stamp uint64) bool {
	h := history(n.elector.State().History)
	return func(log, stamp uint64) bool { return h.termOf(log, stamp, math.MaxUint64) != 0 }
}

// Lost returns the function that tells which updates do not belong to the history of the cluster,
// by the log and the stamp of their origin: a former primary alone has them.
func (n *Node) Lost() func(log, stamp uint64) bool {
	return history(n.elector.State().History).lost()
}

// Marks say what a member's data and its own log have.
type Marks struct {
	Log    uint64            `json:"log"`             // key of its own update log
	Last   uint64            `json:"last"`            // end of its own log
	Newest uint64            `json:"newest"`          // newest update in its own log; not below it
	Marks  map[uint64]uint64 `json:"marks,omitempty"` // newest update of each other log that it has, by key
	Begun  uint64            `json:"begun,omitempty"` // newest term that it has begun as the primary
}

// from returns the stamp in the log of the newest primary behind which a member at p gets what it
// lacks. ok is false if that log does not have all of it as single updates, because the primary got
// a copy behind p: what the copy brought is in the log only as a difference to what the primary had
// before, which was something else than the member has.
func (h history) from(p Position) (stamp uint64, ok bool) {
	a := &h[len(h)-1]
	if a.Base == 0 {
		return p.Stamp, true
	}
	base := Position{Term: h.termOf(a.Base, a.BaseFrom, a.Term), Stamp: a.BaseFrom}
	return max(p.Stamp, a.BaseOwn), base.Term == 0 || !p.Before(base)
}

// had returns the function that tells which updates a member at p has already: those of p's history
// up to p, and those from before the cluster. Stamps of different logs are no help there: the clock
// of the new primary may have been ahead when it stored what it received.
func (h history) had(p Position) func(log, stamp uint64) bool {
	return func(log, stamp uint64) bool {
		return !p.Before(Position{Term: h.termOf(log, stamp, math.MaxUint64), Stamp: stamp})
	}
}

// copiedBehind reports whether a member got a copy of a state behind p: what the copy brought is
// not in its log as single updates.
func (h history) copiedBehind(has *Inventory, p Position) bool {
	if has.Base == 0 {
		return false
	}
	return p.Before(Position{Term: h.termOf(has.Base, has.BaseFrom, math.MaxUint64), Stamp: has.BaseFrom})
}

// locate returns where a member is. The newest term of which it has an update counts. A term that
// the member was appointed for and has not begun is none: what its log got since is of other terms.
func (h history) locate(name string, m Marks) Position {
	for i := len(h) - 1; i >= 0; i-- {
		a := &h[i]
		at := m.Marks[a.Log]
		if a.Primary == name && a.Log == m.Log && a.Term <= m.Begun {
			at = m.Newest
		}
		if at >= a.Start && a.Start > 0 {
			return Position{Term: a.Term, Stamp: at}
		}
	}
	return Position{}
}

// whole reports whether no appointment has been forgotten: then a member that has no position in
// the history has never been in it.
func (h history) whole() bool { return len(h) == 0 || h[0].FromLog == 0 }

// unnoted returns the stamp behind which the log of a member at p may have the first update of a
// term that the member was appointed for, without the note that it has begun: it died in between,
// or the note could not be written. The position says nothing of such an update. Nobody else has
// it, since streams of the term begin after the note; and once the member has followed a later
// term, it has been put aside.
func (h history) unnoted(name string, m Marks, p Position) (after uint64, may bool) {
	for i := range h {
		if a := &h[i]; a.Primary == name && a.Log == m.Log && a.Term > max(m.Begun, p.Term) && a.Start > 0 && a.Start <= m.Newest {
			return a.Start - 1, true
		}
	}
	return 0, false
}

// lostOf is lost for the updates that were made in one log.
func (h history) lostOf(key uint64) func(log, stamp uint64) bool {
	lost := h.lost()
	return func(log, stamp uint64) bool { return log == key && lost(log, stamp) }
}
