package election

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// Raft is the Elector whose members vote among themselves.
type Raft struct {
	*board
	cfg     RaftConfig
	timeout time.Duration // the election timeout, E in doc.go
	turn    turn

	mu       sync.Mutex // guards everything below
	disk     *disk
	node     *raft.RawNode // nil until a member that joins knows its number, and after the end
	log      *slog.Logger
	peers    map[uint64]peer      // of whom messages have come
	strange  map[string]time.Time // who has begun with other members, and when that was heard last
	waiting  map[uint64]proposal
	finished []func()  // tells those whose wait is over
	began    time.Time // questions for a lease count from it
	stopTick func()
	ticks    int
	ended    error // why this elector takes part no more

	// what was committed and applied
	state       State
	members     *pb.ConfState
	applied     uint64 // index of the last entry
	appliedTerm uint64 // its term

	// see Leases in doc.go
	quietUntil    time.Time // of the voters' promise; votes are dropped before
	promisedUntil time.Time // of the promise of a leader as a voter: end of its last lease
	leaseUntil    time.Time
	asked         uint64 // term in which the leader has asked for its first lease
	spent         uint64 // term in which a transfer was begun: it has no lease any more
	rescue        bool   // this witness has refused a member for its older log
}

// A peer is what this member has learned of another one from its messages.
type peer struct {
	name, addr string
	heard      time.Time
}

// OpenRaft starts a member. It takes part in elections at once; the Transport may be called before
// OpenRaft returns.
func OpenRaft(cfg RaftConfig) (*Raft, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	d, err := openDisk(cfg.FS, cfg.Dir)
	if err != nil {
		return nil, err
	}
	r := &Raft{
		board: newBoard(cfg.Clock), cfg: cfg, disk: d, log: cfg.Log,
		timeout: time.Duration(cfg.ElectionTicks) * cfg.Tick,
		turn:    newTurn(),
		peers:   map[uint64]peer{}, strange: map[string]time.Time{}, waiting: map[uint64]proposal{}, members: &pb.ConfState{},
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.startLocked(); err != nil {
		_ = d.Close()
		return nil, err
	}
	r.stopTick = cfg.Clock.AfterFunc(cfg.Tick, r.tick)
	return r, nil
}

// startLocked begins with what the directory holds.
func (r *Raft) startLocked() error {
	r.began = r.cfg.Clock.Now()
	r.quietUntil = r.began.Add(r.timeout)
	members := identify(r.cfg.Cluster, r.cfg.Members)
	who := identity{List: fingerprint(r.cfg.Cluster, members), Name: r.cfg.Name}
	switch {
	case r.disk.who.ID == 0 && len(members) == 0:
		return nil // adopt comes later
	case r.disk.who.ID == 0:
		for _, m := range members {
			if m.Name == r.cfg.Name {
				who.ID = m.ID
			}
		}
		if err := r.disk.begin(who, firstSnapshot(members)); err != nil {
			return err
		}
	case r.disk.who.Name != r.cfg.Name:
		return fmt.Errorf("election: %s belongs to the member %q, and this one is called %q:"+
			" give every member a directory of its own", r.cfg.Dir, r.disk.who.Name, r.cfg.Name)
	case len(members) > 0 && r.disk.who.List != who.List && r.disk.untold():
		r.log.Warn("election: this member begins with the list of members that it is given now;"+
			" with the former one it has taken part in nothing", "dir", r.cfg.Dir)
		if err := r.disk.forget(); err != nil {
			return err
		}
		return r.startLocked()
	case len(members) > 0 && r.disk.who.List != who.List:
		r.log.Warn("election: the list of members is not the one that this member began with; it is"+
			" ignored, because others may count on what this member has told them. A running cluster"+
			" is changed by adding and removing members. If the former list was wrong and there is no"+
			" cluster with it, remove this file", "file", r.disk.path)
	}
	return r.runLocked()
}

// runLocked starts raft on what the disk holds.
func (r *Raft) runLocked() error {
	s, err := r.disk.Snapshot()
	if err != nil {
		return err
	}
	if err := r.restoreLocked(s); err != nil {
		return err
	}
	r.node, err = raft.NewRawNode(&raft.Config{
		ID:                        r.disk.who.ID,
		Storage:                   storage{r.disk.MemoryStorage, r},
		ElectionTick:              r.cfg.ElectionTicks,
		HeartbeatTick:             1,
		MaxSizePerMsg:             1 << 20,
		MaxInflightMsgs:           64,
		MaxUncommittedEntriesSize: 16 << 20,
		PreVote:                   true,
		CheckQuorum:               true,
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
		Logger:                    raftLogger{r.log},
	})
	if err != nil {
		return err
	}
	if v := r.members.GetVoters(); len(v) == 1 && v[0] == r.disk.who.ID {
		if err := r.node.Campaign(); err != nil { // nobody else needs to be asked
			return err
		}
	}
	r.processLocked()
	return r.ended
}

// tick is called by the clock.
func (r *Raft) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return
	}
	if r.node != nil {
		r.ticks++
		r.node.Tick()
		r.processLocked()
		r.dutiesLocked()
		r.processLocked()
	}
	// The next tick is a whole tick away even when this one was late.
	r.stopTick = r.cfg.Clock.AfterFunc(r.cfg.Tick, r.tick)
}

// dutiesLocked is what a leader does from time to time.
func (r *Raft) dutiesLocked() {
	if r.node == nil {
		return
	}
	status := r.node.BasicStatus()
	switch {
	case status.RaftState != raft.StateLeader:
	case r.selfLocked().Witness:
		r.resignLocked()
	case r.spent == status.GetTerm():
		if status.LeadTransferee == raft.None {
			r.stepDownLocked()
		}
	case r.leadsLocked():
		if r.ticks%renewTicks == 0 {
			r.askLocked()
		}
		r.promoteLocked()
	}
}

// leadsLocked reports whether this member leads its term and knows the newest committed State: with
// an entry of the term everything before it is applied.
func (r *Raft) leadsLocked() bool {
	if r.node == nil {
		return false
	}
	status := r.node.BasicStatus()
	term := status.GetTerm()
	return status.RaftState == raft.StateLeader && r.appliedTerm == term && r.spent != term &&
		!r.selfLocked().Witness
}

// selfLocked returns this member as the cluster knows it.
func (r *Raft) selfLocked() Member {
	m, _ := r.state.Member(r.cfg.Name)
	return m
}

// memberLocked returns the member with a number.
func (r *Raft) memberLocked(id uint64) (Member, bool) {
	i := slices.IndexFunc(r.state.Members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return r.state.Members[i], true
}

// publishLocked shows the present, and then ends the waits that are over.
func (r *Raft) publishLocked() {
	v := view{leads: r.leadsLocked(), state: r.state, err: r.ended, term: r.shown.Load().term, trouble: r.troubleLocked()}
	if r.node != nil {
		status := r.node.BasicStatus()
		v.term = status.GetTerm()
		if m, ok := r.memberLocked(status.Lead); ok && !m.Witness {
			v.leader = m.Name
		}
	}
	if v.leads {
		v.lease = r.leaseUntil
	}
	r.show(v)
	for _, tell := range r.finished {
		tell()
	}
	r.finished = nil
}

// failLocked ends the part of this member in the cluster.
func (r *Raft) failLocked(err error) {
	if r.ended != nil {
		return
	}
	r.ended, r.node = err, nil
	if r.stopTick != nil {
		r.stopTick()
	}
	r.forgetLocked()
	r.publishLocked()
}

// Close implements Elector.
func (r *Raft) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended == ErrClosed {
		return nil
	}
	if r.ended != nil {
		r.log.Info("the election ends after a failure", "error", r.ended)
		r.ended = nil
	}
	r.failLocked(ErrClosed)
	return r.disk.Close()
}
