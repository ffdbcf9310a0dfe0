package election

import (
	"context"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// Transfer implements Elector. See "Transfer of leadership" in doc.go.
func (r *Raft) Transfer(ctx context.Context, to string) error {
	if err := r.turn.take(ctx); err != nil {
		return err
	}
	defer r.turn.pass()
	term, err := r.beginTransfer(to)
	if err != nil {
		return err
	}
	if err := r.awaitLeader(ctx, to, term); err != nil {
		r.abortTransfer(term)
		return err
	}
	return nil
}

// Hears implements Elector.
func (r *Raft) Hears(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, known := r.state.Member(name)
	return known && r.answersLocked(m.ID)
}

// beginTransfer gives up the lease and asks the other member to take over.
func (r *Raft) beginTransfer(to string) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.leadsLocked() {
		return 0, ErrNotLeading
	}
	m, err := r.state.successor(to, r.cfg.Name)
	if err != nil {
		return 0, err
	}
	if !r.answersLocked(m.ID) {
		return 0, fmt.Errorf("%w: %q does not answer; nothing was changed", ErrRefused, to)
	}
	term := r.node.BasicStatus().GetTerm()
	r.spent = term
	r.leaseUntil, r.promisedUntil = r.began, r.began
	r.publishLocked()
	r.node.TransferLeader(m.ID)
	r.processLocked()
	return term, nil
}

// abortTransfer ends the term whose leader could not hand over.
func (r *Raft) abortTransfer(term uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.node == nil {
		return
	}
	if s := r.node.BasicStatus(); s.RaftState == raft.StateLeader && s.GetTerm() == term {
		r.stepDownLocked()
		r.processLocked()
	}
}

// stepDownLocked makes this leader a follower of the next term, in which it has no vote to give any
// more than in its own: raft has no word for it, so it is told that another member has gone on.
func (r *Raft) stepDownLocked() {
	term := r.node.BasicStatus().GetTerm()
	for _, m := range r.state.Members {
		if m.Name != r.cfg.Name {
			_ = r.node.Step(&pb.Message{
				Type: pb.MsgAppResp.Enum(), From: new(m.ID), To: new(r.disk.who.ID), Term: new(term + 1),
			})
			return
		}
	}
}

// resignLocked hands the leadership that a witness has in raft to a member.
func (r *Raft) resignLocked() {
	for _, m := range r.state.Members {
		if !m.Witness && !m.Joining && r.upToDateLocked(m.ID) {
			r.node.TransferLeader(m.ID)
			return
		}
	}
}
