package cluster

import (
	"context"
	"errors"
	"fmt"

	"gotycoon/cluster/election"
	"gotycoon/internal/words"
)

// open begins the term for which this member was appointed. The first update of the term has to be
// on followers before clients are answered: whatever is older is then there as well.
//
// The note that the term has begun comes behind that update: with a note of a term that has none,
// what this member receives later would count as a part of the term. A member that dies in between,
// or cannot write the note, has an update of which its position does not tell (history.unnoted).
func (n *Node) open(term uint64, st election.State) error {
	early, cancel := context.WithTimeout(n.ctx, haltTimeout)
	defer cancel()
	if err := n.beginWork(early); err != nil {
		return err
	}
	defer n.endWork()
	n.mu.Lock()
	over := n.sealed > term || n.active()
	n.mu.Unlock()
	if over {
		return nil
	}
	begun, err := n.opts.Data.Lead(term, ruleOf(st))
	if err == nil {
		err = n.begins.write(term)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		n.begun = term
		err = n.stillLeads(term) // the disk may have taken long
	}
	if err != nil {
		err = fmt.Errorf("becoming the primary: %w", err)
		n.opts.Data.StepDown(err)
		return err
	}
	ctx, cease := context.WithCancel(n.ctx)
	n.tenure, n.cease = ctx, cease
	n.become(Opening, term)
	n.trouble = fmt.Sprintf("%s waits until %s the first update of term %d; if too few followers are left for good, 'ktremotemgr cluster require 0' "+
		"lets this member go on alone: from then on its disk alone has the data", n.opts.Name, words.FollowersHave(st.Required), term)
	n.done.Go(func() {
		if n.opts.Data.Confirmed(ctx, begun) == nil {
			n.serve(ctx, term, nil)
		}
	})
	return nil
}

// stillLeads returns why this member must not begin a term. mu is held.
func (n *Node) stillLeads(term uint64) error {
	if n.ctx.Err() != nil { // Close has had this member step down already
		return errStops
	}
	if now, leads := n.elector.Leading(); !leads || now != term {
		return fmt.Errorf("the leadership of term %d was lost meanwhile", term)
	}
	return nil
}

// lead keeps the rule of the present members. The State is read under the lock: an older one could
// count a member that an order has removed meanwhile.
func (n *Node) lead() {
	n.mu.Lock()
	defer n.mu.Unlock()
	st := n.elector.State()
	if (n.role == Leading || n.role == Opening) && st.Term == n.term {
		n.opts.Data.Require(n.ruleNow(st))
	}
}

// ruleNow returns the rule in force. mu is held.
func (n *Node) ruleNow(st election.State) Rule {
	rule := ruleOf(st)
	if n.stricter != nil {
		rule = n.stricter(rule)
	}
	return rule
}

// ruleOf returns the rule of a state: all other members with data and a vote count.
func ruleOf(st election.State) Rule {
	r := Rule{Required: st.Required}
	for _, m := range st.Members {
		if !m.Witness && !m.Joining && m.Name != st.Primary && m.SID != 0 {
			r.Counts = append(r.Counts, m.SID)
		}
	}
	return r
}

// errForeign: data that do not come from the cluster are not replaced.
var errForeign = errors.New("the data of this member are not the cluster's, and it replaces no data by itself: stop it, move its databases and " +
	"its update log away, and start it again")

// follow follows the primary of a state. A member whose data leave the history puts aside what only
// it has, and gets copies of the primary's databases.
func (n *Node) follow(st election.State) error {
	ctx, cancel := context.WithTimeout(n.ctx, haltTimeout)
	defer cancel()
	if n.follows(st) {
		return nil
	}
	if err := n.beginWork(ctx); err != nil {
		return err
	}
	defer n.endWork()
	if n.follows(st) {
		return nil
	}
	primary, ok := st.Member(st.Primary)
	if !ok {
		return fmt.Errorf("the primary %s is no member any more", st.Primary)
	}
	if err := n.opts.Data.Halt(ctx); err != nil {
		return err
	}
	has, err := n.inventory()
	if err != nil {
		return err
	}
	if err := n.join(st, primary, has); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.become(Following, st.Term)
	return nil
}

// follows reports whether this member follows the primary of a state, or must not.
func (n *Node) follows(st election.State) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return st.Term < n.sealed || n.role == Following && n.term == st.Term
}

// leave ends the replication of a server that takes part no more.
func (n *Node) leave(why error) error {
	n.mu.Lock()
	n.stepDown(why)
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(n.ctx, haltTimeout)
	defer cancel()
	if err := n.beginWork(ctx); err != nil {
		return err
	}
	defer n.endWork()
	if err := n.opts.Data.Halt(ctx); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.become(Waiting, n.term)
	return why
}

// join begins to follow the primary, from where this member's data leave the history. work is held.
func (n *Node) join(st election.State, primary election.Member, has Inventory) error {
	h := history(st.History)
	at := h.locate(n.opts.Name, has.Marks)
	if after, may := h.unnoted(n.opts.Name, has.Marks, at); may {
		count, err := n.setAside(st, at, after, h.lostOf(has.Log))
		if err != nil {
			return err
		}
		if count > 0 {
			n.opts.Data.Replace(primary, st.Term)
			return nil
		}
	}
	switch b := h.branch(at); {
	case at.Term == st.Term || at.Term == 0 && has.Follows == st.Log && h.whole():
		n.opts.Data.Follow(primary, st.Term, nil)
		return nil
	case at.Term == 0 && has.Empty:
		n.opts.Data.Replace(primary, st.Term)
		return nil
	case at.Term == 0:
		return errForeign
	case b.Known && b.Clean && has.Incomplete == "":
		n.goOn(st, primary, at)
		return nil
	default:
		return n.rewind(st, primary, &has, at, b)
	}
}

// goOn follows the primary behind a position, or gets copies where its log does not reach back.
func (n *Node) goOn(st election.State, primary election.Member, at Position) {
	h := history(st.History)
	if from, ok := h.from(at); ok {
		n.opts.Data.Follow(primary, st.Term, &Join{From: from, Had: h.had(at)})
		return
	}
	n.opts.Data.Replace(primary, st.Term)
}

// rewind takes this member back to the history. work is held.
func (n *Node) rewind(st election.State, primary election.Member, has *Inventory, at Position, b Branch) error {
	h := history(st.History)
	count, err := n.setAside(st, at, b.At.Stamp, h.lost())
	if err != nil {
		return err
	}
	if count == 0 && b.Known && b.At.Term != 0 && has.Incomplete == "" && !h.copiedBehind(has, b.At) {
		n.goOn(st, primary, b.At)
		return nil
	}
	n.opts.Data.Replace(primary, st.Term)
	return nil
}

// setAside puts aside what is lost of this member's log behind a stamp, and returns how many
// updates that is.
func (n *Node) setAside(st election.State, at Position, after uint64, lost func(log, stamp uint64) bool) (count int, err error) {
	count, dir, err := n.opts.Data.SetAside(st.Term, after, lost)
	if err != nil {
		return 0, fmt.Errorf("putting aside what only this member has: %w", err)
	}
	if count > 0 {
		n.mu.Lock()
		n.aside = Aside{Updates: count, Dir: dir, Term: st.Term}
		n.mu.Unlock()
		n.opts.Logger.Error(fmt.Sprintf("cluster: only this member has updates behind term %d, stamp %d (updates: %d), and the cluster never acknowledged them: they "+
			"are in %s ('ktutilmgr ulog' shows them), and the databases become copies of the primary's", at.Term, after, count, dir))
	}
	return count, nil
}
