package quota

import (
	"errors"
	"fmt"

	"gotycoon/db"
)

// Rounds.
//
// Problem. The commit of an apply costs more than all the rest of the call: locks, an entry of the
// log, two records. With 64 clients the port serves a dozen calls before their replies leave
// together (netio's loops), and each of these calls replaces the record of the same state.
//
// Rule. An apply without an id changes the state in memory and adds its journal to the open round.
// The first reply that is about to leave commits the round: all journals, then the state once. The
// other replies of the round find it committed. Every other call commits the open round first.
//
//	loop   apply │ apply │ apply │ reply: commit {journal 7, 8, 9, state}, send │ send │ send
//	log    … journal 7, journal 8, journal 9, state 91 9 1 …
//
// If the commit fails, the state is again what it was before the round, and none of the replies
// leaves: their connections end, since nobody knows the reason when the replies are made. Therefore
// calls form rounds only while nothing speaks against a commit (DB.AllowsLate), and after a failure
// they are committed one by one, and told the reason, until one of them succeeds.
//
// The state comes last here, not first as in last.go. A follower that has received only journals of
// a round has a state that does not count them: the calls have not been carried out there, and the
// next applies replace these journals. Nobody reads a journal above the number in the state. Calls
// with an id cannot do the same: the record of the id alone would answer for a call that was not
// carried out.

// mostApplies is how many applies one round has at most.
const mostApplies = 128

// round is the applies that are committed together. mu of the quota protects it.
type round struct {
	of       *quota
	before   state  // of the quota, before the first call
	journals *group // nil when the round has ended
	err      error  // why the commit failed
}

// errEnded is the error of a round whose commit has not come to an end.
var errEnded = errors.New("the commit of the round was broken off")

// forms reports whether a call joins a round. mu is held.
func (q *quota) forms(c *call) bool {
	return c.word == "apply" && len(c.id) == 0 && !q.alone && q.records.AllowsLate()
}

// join carries out an apply as part of the open round. mu is held.
func (q *quota) join(dst []byte, c *call) ([]byte, error) {
	at, r := len(dst), q.open
	if r == nil {
		r = &round{of: q, before: q.state, journals: q.records.newGroup()}
		q.open = r
	}
	c.pending.Defer(r)
	dst = q.apply(dst, c, r.journals)
	if c.closes || len(r.journals.recs) > mostApplies {
		q.commitRound()
		if r.err != nil {
			return dst[:at], r.err
		}
	}
	if c.closes {
		q.export()
	}
	return dst, nil
}

// Finish implements db.Late.
func (r *round) Finish(p *db.Pending) error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if r.journals != nil {
		r.of.commitRound()
	}
	if r.err != nil {
		return r.err
	}
	return r.of.seen(p)
}

// commitRound commits the open round, if there is one. Its callers hear of a failure; for everybody
// else the round has not been. mu is held.
func (q *quota) commitRound() {
	r, after := q.open, q.state
	if r == nil {
		return
	}
	g := r.journals
	q.open, r.journals = nil, nil
	defer q.records.groups.Put(g)
	if after == r.before {
		return
	}
	g.finalState(q)
	q.state, q.alone, r.err = r.before, true, errEnded // until the commit has succeeded
	_, r.err = q.records.SetBulk(&q.rounds, g.all(), true)
	q.rounds.Forget() // Finish has each client wait
	if r.err != nil {
		q.failed(fmt.Errorf("applies that share a commit: %w", r.err))
		return
	}
	q.state, q.alone = after, false
}
