package election

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

const firstIndex, firstTerm = 1, 1

// firstSnapshot is the state that all members of a new cluster begin with.
func firstSnapshot(members []Member) *pb.Snapshot {
	cs := &pb.ConfState{}
	for _, m := range members {
		cs.Voters = append(cs.Voters, m.ID)
	}
	slices.Sort(cs.Voters)
	return snapshot(firstIndex, firstTerm, cs, State{Members: members, Version: 1})
}

func snapshot(index, term uint64, members *pb.ConfState, s State) *pb.Snapshot {
	data, _ := json.Marshal(s) // a State has nothing that JSON cannot hold
	return &pb.Snapshot{Data: data, Metadata: &pb.SnapshotMetadata{
		Index: new(index), Term: new(term), ConfState: members,
	}}
}

// restoreLocked takes over a snapshot, which is empty for a member that joins.
func (r *Raft) restoreLocked(s *pb.Snapshot) error {
	if raft.IsEmptySnap(s) {
		return nil
	}
	state := State{}
	if err := json.Unmarshal(s.GetData(), &state); err != nil {
		return fmt.Errorf("election: the state of a snapshot cannot be read: %w", err)
	}
	r.state, r.members = state, s.GetMetadata().GetConfState()
	r.applied, r.appliedTerm = s.GetMetadata().GetIndex(), s.GetMetadata().GetTerm()
	return nil
}

// storage is what raft reads. Its snapshots are made on demand, so that they contain a member that
// was just added: raft on that member refuses others.
type storage struct {
	*raft.MemoryStorage
	r *Raft
}

// Snapshot implements raft.Storage. It is called by raft, so under r.mu.
func (s storage) Snapshot() (*pb.Snapshot, error) {
	return snapshot(s.r.applied, s.r.appliedTerm, s.r.members, s.r.state), nil
}
