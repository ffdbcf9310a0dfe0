package election

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// errSuperseded: another change was committed since a change was made.
var errSuperseded = errors.New("another change came first")

// A proposal waits for its entry to be applied.
type proposal struct {
	members bool // it changes the membership in raft
	done    func(error)
}

// An edit makes a new State, and for a change of membership says what raft must change.
type edit func(State) (State, *pb.ConfChange, error)

// Propose implements Elector.
func (r *Raft) Propose(ctx context.Context, term uint64, change func(State) (State, error)) error {
	return r.commit(ctx, term, func(before State) (State, *pb.ConfChange, error) {
		after, err := keepMembers(before, change)
		return after, nil, err
	})
}

// AddMember implements Elector. In raft a member that joins is a learner.
func (r *Raft) AddMember(ctx context.Context, term uint64, m Member) error {
	return r.commit(ctx, term, adding(m))
}

func adding(m Member) edit {
	m.ID, m.Joining = randomNumber(), true
	return func(s State) (State, *pb.ConfChange, error) {
		s, err := s.with(m)
		return s, confChange(pb.ConfChangeAddLearnerNode, m.ID), err
	}
}

// RemoveMember implements Elector.
func (r *Raft) RemoveMember(ctx context.Context, term uint64, name string) error {
	if name == r.cfg.Name {
		return errRemoveSelf
	}
	return r.commit(ctx, term, removing(name))
}

func removing(name string) edit {
	return func(s State) (State, *pb.ConfChange, error) {
		m, _ := s.Member(name)
		s, err := s.without(name)
		return s, confChange(pb.ConfChangeRemoveNode, m.ID), err
	}
}

func confChange(t pb.ConfChangeType, id uint64) *pb.ConfChange {
	return &pb.ConfChange{Type: t.Enum(), NodeId: new(id)}
}

// commit commits a change, and makes it again as often as another one comes first.
func (r *Raft) commit(ctx context.Context, term uint64, change edit) error {
	if err := r.turn.take(ctx); err != nil {
		return err
	}
	defer r.turn.pass()
	for {
		applied := make(chan error, 1)
		id, err := r.begin(term, change, func(err error) { applied <- err })
		if err != nil {
			return err
		}
		select {
		case err = <-applied:
		case <-ctx.Done():
			err = r.giveUp(id, ctx.Err())
		}
		if err != errSuperseded {
			return err
		}
	}
}

// giveUp ends the wait for a proposal.
func (r *Raft) giveUp(id uint64, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, id)
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// begin proposes a change, which is made without the lock. done is called under the lock.
func (r *Raft) begin(term uint64, change edit, done func(error)) (uint64, error) {
	if got, ok := r.Leading(); !ok || got != term {
		return 0, ErrNotLeading
	}
	before := r.State()
	after, members, err := change(before)
	if err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.leadsLocked() || r.node.BasicStatus().GetTerm() != term {
		return 0, ErrNotLeading
	}
	return r.proposeLocked(before, after, members, done)
}

// proposeLocked gives a change to raft.
func (r *Raft) proposeLocked(before, after State, members *pb.ConfChange, done func(error)) (uint64, error) {
	c := command{ID: randomNumber(), Base: before.Version, State: after.next(before)}
	data, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	r.waiting[c.ID] = proposal{members != nil, done}
	if members == nil {
		err = r.node.Propose(data)
	} else {
		members.Context = data
		err = r.node.ProposeConfChange(members)
	}
	if err != nil {
		delete(r.waiting, c.ID)
		return 0, fmt.Errorf("%w: %w", ErrNotLeading, err)
	}
	r.processLocked()
	return c.ID, nil
}

// finishLocked ends the wait for a proposal. Who waits is told by publishLocked, after State shows
// what was committed.
func (r *Raft) finishLocked(id uint64, err error) {
	if p, ok := r.waiting[id]; ok {
		delete(r.waiting, id)
		r.finished = append(r.finished, func() { p.done(err) })
	}
}

// finishMembersLocked has the changes of membership proposed again that raft refused in its log.
func (r *Raft) finishMembersLocked() {
	for id, p := range r.waiting {
		if p.members {
			r.finishLocked(id, errSuperseded)
		}
	}
}

// forgetLocked ends all waits after the leadership was lost.
func (r *Raft) forgetLocked() {
	for id := range r.waiting {
		r.finishLocked(id, ErrUnknown)
	}
}

// promoteLocked gives the vote to a member that joined and has caught up.
func (r *Raft) promoteLocked() {
	i := slices.IndexFunc(r.state.Members, func(m Member) bool { return m.Joining })
	if i < 0 || !r.upToDateLocked(r.state.Members[i].ID) {
		return
	}
	if !r.turn.try() {
		return // the next tick tries again
	}
	after := r.state.clone()
	after.Members[i].Joining = false
	change := confChange(pb.ConfChangeAddNode, after.Members[i].ID)
	_, err := r.proposeLocked(r.state, after, change, func(error) { r.turn.pass() })
	if err != nil {
		r.turn.pass()
	}
}

// answersLocked reports whether a member was heard lately.
func (r *Raft) answersLocked(id uint64) bool {
	p, known := r.peers[id]
	return known && r.cfg.Clock.Now().Sub(p.heard) < r.timeout/2
}

// upToDateLocked reports whether a member answers and has the whole log of this leader.
func (r *Raft) upToDateLocked(id uint64) (ok bool) {
	last, _ := r.disk.LastIndex() // never fails
	r.node.WithProgress(func(member uint64, _ raft.ProgressType, pr tracker.Progress) {
		ok = ok || member == id && pr.Match == last && r.answersLocked(id)
	})
	return ok
}

// randomNumber returns a number for a member or a proposal that no other one has.
func randomNumber() uint64 {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return max(1, binary.LittleEndian.Uint64(b)&math.MaxInt64)
}
