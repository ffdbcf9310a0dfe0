package election

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Receive takes a message that the member from has sent. It returns after the member's answer was
// given to the Transport, which may need a write to the disk.
func (r *Raft) Receive(from string, msg []byte) {
	e, err := decodeEnvelope(msg)
	if err != nil || e.from != from || e.to != r.cfg.Name || e.cluster != hash(r.cfg.Cluster) {
		r.log.Debug("election: a message was dropped", "from", from, "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return
	}
	if r.node == nil {
		r.adoptLocked(e)
	}
	if r.node == nil || !r.isForMeLocked(e) {
		return
	}
	now := r.cfg.Clock.Now()
	r.peers[e.message.GetFrom()] = peer{e.from, e.addr, now}
	if _, known := r.memberLocked(e.message.GetFrom()); !known && r.leadsLocked() && now.Before(r.leaseUntil) {
		r.sendEnvelopeLocked(true, &pb.Message{To: e.message.From})
		return
	}
	r.stepLocked(e.message)
	r.processLocked()
}

// adoptLocked gives a member that joins the number that the leader calls it by. A leader has never
// heard of a new member, so its first heartbeats announce no commit; announces it one, this server
// was a member before and has lost its directory.
func (r *Raft) adoptLocked(e *envelope) {
	m := e.message
	if m.GetType() != pb.MsgHeartbeat {
		return
	}
	if m.GetCommit() > 0 {
		r.failLocked(ErrLost)
		return
	}
	err := r.disk.begin(identity{ID: m.GetTo(), List: e.list, Name: r.cfg.Name}, nil)
	if err == nil {
		err = r.runLocked()
	}
	if err != nil {
		r.failLocked(err)
	}
}

// isForMeLocked drops messages of a cluster that began with other members, and notices that the
// member was added again under another number.
func (r *Raft) isForMeLocked(e *envelope) bool {
	if e.list != r.disk.who.List {
		known := r.strangeLocked(e.from)
		r.strange[e.from] = r.cfg.Clock.Now()
		if r.publishLocked(); !known {
			r.log.Warn("election: " + r.troubleLocked())
		}
		return false
	}
	delete(r.strange, e.from)
	m := e.message
	mine := m.GetTo() == r.disk.who.ID
	if mine && e.removed || !mine && m.GetType() == pb.MsgHeartbeat {
		r.failLocked(fmt.Errorf("%s: %w", r.cfg.Dir, ErrRemoved))
		return false
	}
	return mine
}

// fromMembers are the messages that members may send; others are for raft's own use in a process.
func fromMembers(t pb.MessageType) bool {
	switch t {
	case pb.MsgApp, pb.MsgAppResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp,
		pb.MsgSnap, pb.MsgHeartbeat, pb.MsgHeartbeatResp, pb.MsgTimeoutNow:
		return true
	}
	return false
}

// stepLocked gives a message to raft, unless a promise forbids it.
func (r *Raft) stepLocked(m *pb.Message) {
	now := r.cfg.Clock.Now()
	term := r.node.BasicStatus().GetTerm()
	last, _ := r.disk.LastIndex() // never fails
	switch {
	case !fromMembers(m.GetType()):
		return
	case isVote(m) && r.mustNotVoteLocked(m, now):
		return
	case m.GetType() == pb.MsgTimeoutNow && r.selfLocked().Witness:
		return
	case m.GetType() == pb.MsgHeartbeat && m.GetTerm() >= term && m.GetCommit() > last:
		// The leader announces what this member has acknowledged in this term.
		r.failLocked(ErrLost)
		return
	}
	if isVote(m) {
		r.rescue = r.rescue || r.mustRefuseLocked(m, last)
	}
	if err := r.node.Step(m); err != nil {
		r.log.Debug("election: a message was dropped", "error", err)
	}
	switch m.GetType() {
	case pb.MsgHeartbeat, pb.MsgApp, pb.MsgSnap:
		if s := r.node.BasicStatus(); s.Lead == m.GetFrom() && s.GetTerm() == m.GetTerm() {
			r.quietUntil, r.rescue = later(r.quietUntil, now.Add(r.timeout)), false
		}
	}
}

// mustRefuseLocked reports whether this member is a witness with a newer log than the sender of a
// vote has. See Witnesses in doc.go.
func (r *Raft) mustRefuseLocked(m *pb.Message, last uint64) bool {
	term, _ := r.disk.Term(last) // never fails
	older := m.GetLogTerm() < term || m.GetLogTerm() == term && m.GetIndex() < last
	return older && r.selfLocked().Witness
}

// processLocked does what raft wants until there is no more of it: save, then send, then apply.
func (r *Raft) processLocked() {
	for r.node != nil {
		if !r.node.HasReady() {
			if r.firstLeaseLocked() {
				continue
			}
			break
		}
		rd := r.node.Ready()
		if err := r.disk.save(&rd); err != nil {
			r.failLocked(fmt.Errorf("the election cannot go on: %w; make room or replace the disk,"+
				" then start the server again", err))
			return
		}
		if err := r.restoreLocked(rd.Snapshot); err != nil {
			r.failLocked(err)
			return
		}
		for _, m := range rd.Messages {
			r.sendLocked(m)
		}
		for _, e := range rd.CommittedEntries {
			if err := r.applyLocked(e); err != nil {
				r.failLocked(err)
				return
			}
		}
		r.confirmLocked(rd.ReadStates)
		r.node.Advance(rd)
	}
	if r.node == nil {
		return
	}
	if r.node.BasicStatus().RaftState != raft.StateLeader {
		r.forgetLocked()
	}
	r.compactLocked()
	r.publishLocked()
}

// sendLocked gives a message to the Transport, unless a promise forbids it.
func (r *Raft) sendLocked(m *pb.Message) {
	if isVote(m) && r.mustNotCampaignLocked(m) {
		return
	}
	r.sendEnvelopeLocked(false, m)
	if m.GetType() == pb.MsgSnap {
		// The transport tells nothing. A snapshot that was lost is noticed when the entry after it
		// is refused, and sent again.
		r.node.ReportSnapshot(m.GetTo(), raft.SnapshotFinish)
	}
}

// sendEnvelopeLocked gives an envelope to the Transport. A member that joins knows nobody but who
// has sent it a message.
func (r *Raft) sendEnvelopeLocked(removed bool, m *pb.Message) {
	to, known := r.memberLocked(m.GetTo())
	if !known {
		p := r.peers[m.GetTo()]
		to, known = Member{Name: p.name, Addr: p.addr}, p.name != ""
	}
	if !known {
		return
	}
	e := envelope{
		removed: removed, cluster: hash(r.cfg.Cluster), list: r.disk.who.List,
		to: to.Name, from: r.cfg.Name, addr: r.cfg.Addr, message: m,
	}
	b, err := e.encode()
	if err != nil {
		r.log.Error("election: a message cannot be sent", "to", to.Name, "error", err)
		return
	}
	r.cfg.Transport.Send(to, b)
}

// A command is a change of the State in raft's log.
type command struct {
	ID    uint64 `json:"id"`   // of the proposal, for whoever waits for it
	Base  uint64 `json:"base"` // the version of the State that it was made of
	State State  `json:"state"`
}

// applyLocked applies a committed entry. A command that was made of another State than the present
// one has no effect: its author is told, and makes it anew. All members decide alike.
func (r *Raft) applyLocked(e *pb.Entry) error {
	r.applied, r.appliedTerm = e.GetIndex(), e.GetTerm()
	data := e.GetData()
	var change *pb.ConfChange
	if e.GetType() == pb.EntryConfChange {
		change = &pb.ConfChange{}
		if err := proto.Unmarshal(data, change); err != nil {
			return fmt.Errorf("election: entry %d cannot be read: %w", r.applied, err)
		}
		data = change.GetContext()
	}
	if len(data) == 0 {
		// The first entry of a term, or what raft made of a change of membership that came too
		// early.
		r.finishMembersLocked()
		return nil
	}
	c := command{}
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("election: entry %d cannot be read: %w", r.applied, err)
	}
	if c.Base != r.state.Version {
		r.finishLocked(c.ID, errSuperseded)
		return nil
	}
	r.state = c.State
	if change != nil {
		r.members = r.node.ApplyConfChange(change)
	}
	r.finishLocked(c.ID, nil)
	return nil
}

// compactLocked replaces a file that has grown.
func (r *Raft) compactLocked() {
	first, _ := r.disk.FirstIndex() // never fails
	if r.disk.size < diskFilled || r.applied < first {
		return
	}
	if err := r.disk.compact(snapshot(r.applied, r.appliedTerm, r.members, r.state)); err != nil {
		r.failLocked(fmt.Errorf("the election cannot go on: %w; make room or replace the disk,"+
			" then start the server again", err))
	}
}

// isVote reports whether a message asks for a vote.
func isVote(m *pb.Message) bool {
	return m.GetType() == pb.MsgVote || m.GetType() == pb.MsgPreVote
}

// isTransfer reports whether the leader itself wants the election: raft marks its votes.
func isTransfer(m *pb.Message) bool {
	return bytes.Equal(m.GetContext(), []byte("CampaignTransfer"))
}
