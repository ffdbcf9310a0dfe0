package election

import (
	"encoding/binary"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// lease is D in doc.go.
func (r *Raft) lease() time.Duration { return (r.timeout - r.cfg.Tick) / 10 * 9 }

// mustNotVoteLocked reports whether the voters' promise forbids to hear of a vote. The votes of a
// transfer are heard: the leader has given up its lease before.
func (r *Raft) mustNotVoteLocked(m *pb.Message, now time.Time) bool {
	return !isTransfer(m) && (now.Before(r.quietUntil) || now.Before(r.promisedUntil))
}

// mustNotCampaignLocked reports whether this member must keep its own campaign to itself.
func (r *Raft) mustNotCampaignLocked(m *pb.Message) bool {
	if r.mustNotVoteLocked(m, r.cfg.Clock.Now()) {
		return true
	}
	return r.selfLocked().Witness && !r.rescue
}

// askLocked asks for a lease. The question carries the term and the time t0 before it was asked.
func (r *Raft) askLocked() {
	t0 := r.cfg.Clock.Now()
	question := binary.LittleEndian.AppendUint64(nil, r.node.BasicStatus().GetTerm())
	question = binary.LittleEndian.AppendUint64(question, uint64(t0.Sub(r.began)))
	r.node.ReadIndex(question)
}

// firstLeaseLocked asks for the first lease of a term as soon as this member leads it, and reports
// whether it has.
func (r *Raft) firstLeaseLocked() bool {
	if !r.leadsLocked() {
		return false
	}
	term := r.node.BasicStatus().GetTerm()
	if r.asked == term {
		return false
	}
	r.asked, r.leaseUntil = term, time.Time{}
	r.askLocked()
	return true
}

// confirmLocked takes the leases that a majority has confirmed. raft keeps questions that came too
// early; so one may come back in a later term, where it is worth nothing.
func (r *Raft) confirmLocked(confirmed []raft.ReadState) {
	for _, c := range confirmed {
		term := binary.LittleEndian.Uint64(c.RequestCtx)
		t0 := r.began.Add(time.Duration(binary.LittleEndian.Uint64(c.RequestCtx[8:])))
		if !r.leadsLocked() || term != r.node.BasicStatus().GetTerm() {
			continue
		}
		r.leaseUntil = later(r.leaseUntil, t0.Add(r.lease()))
		r.promisedUntil = later(r.promisedUntil, r.leaseUntil)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
