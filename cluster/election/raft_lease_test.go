package election

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// others returns the two servers beside one of three.
func (w *world) others(n *simNode) (*simNode, *simNode) {
	next := map[string]string{"a": "b", "b": "c", "c": "a"}
	return w.nodes[next[n.name]], w.nodes[next[next[n.name]]]
}

// The leader stands still after it has asked for a lease. The answers wait for it while the others
// elect a leader. It must not take a lease from answers that are that old.
func TestALeaseCountsFromTheQuestion(t *testing.T) {
	for seed := range uint64(10) {
		w := newWorld(t, seed)
		w.cluster("a", "b", "c")
		n := w.mustLead()
		w.run(time.Duration(w.rnd.IntN(200)) * time.Millisecond)
		n.r.mu.Lock()
		n.r.askLocked()
		n.r.processLocked()
		n.r.mu.Unlock()
		n.pause()
		w.run(20 * time.Millisecond)
		for _, other := range w.names() { // of the election it hears nothing
			w.cut[[2]string{other, n.name}] = true
		}
		require.NotSame(t, n, w.mustLead())
		n.resume()
		term, _ := n.r.Lease()
		require.Zero(t, term)
	}
}

// A voter that was restarted has forgotten that it heard from the leader. The third member, which
// has not heard from the leader for long, must not win with its vote while the lease goes on.
func TestAVoterThatRestartedWaits(t *testing.T) {
	for seed := range uint64(30) {
		w := newWorld(t, seed)
		w.cluster("a", "b", "c")
		n := w.mustLead()
		voter, candidate := w.others(n)
		w.cut[[2]string{n.name, candidate.name}] = true
		w.run(3*time.Second + time.Duration(w.rnd.IntN(1000))*time.Millisecond)
		require.Same(t, n, w.leader())
		voter.kill()
		w.isolate(n.name, true, true)
		voter.start()
		w.run(3 * time.Second)
		require.NotSame(t, n, w.mustLead())
	}
}

// spy collects what a server sends instead of sending it.
func (n *simNode) spy() *[]pb.MessageType {
	sent := &[]pb.MessageType{}
	n.r.mu.Lock()
	n.r.cfg.Transport = sendFunc(func(_ Member, msg []byte) {
		e, err := decodeEnvelope(msg)
		require.NoError(n.w.t, err)
		*sent = append(*sent, e.message.GetType())
	})
	n.r.mu.Unlock()
	return sent
}

type sendFunc func(Member, []byte)

func (f sendFunc) Send(to Member, msg []byte) { f(to, msg) }

// An answer of a higher term makes raft forget its leader at once. A voter's promise, and that of a
// leader as a voter, must outlive that.
func TestAPromiseOutlivesTheLeader(t *testing.T) {
	for _, leads := range []bool{true, false} {
		w := newWorld(t, 1)
		w.cluster("a", "b", "c")
		n := w.mustLead()
		voter, candidate := w.others(n)
		if leads {
			voter, candidate = n, voter
		}
		w.run(time.Second)
		_, until := n.r.Lease()
		sent := voter.spy()
		receive := func(m *pb.Message) {
			m.From, m.To = new(candidate.r.disk.who.ID), new(voter.r.disk.who.ID)
			e := envelope{
				cluster: hash("test"), list: voter.r.disk.who.List,
				to: voter.name, from: candidate.name, message: m,
			}
			b, err := e.encode()
			require.NoError(t, err)
			voter.r.Receive(candidate.name, b)
		}
		term := n.r.shown.Load().term
		receive(&pb.Message{Type: pb.MsgAppResp.Enum(), Term: new(term + 1), Reject: new(true)})
		require.Equal(t, term+1, voter.r.shown.Load().term)
		vote := func() *pb.Message {
			return &pb.Message{
				Type: pb.MsgVote.Enum(), Term: new(term + 2), Index: new(uint64(100)), LogTerm: new(term),
			}
		}
		w.isolate(voter.name, true, true)
		for voter.Now().Before(until) {
			receive(vote())
			require.NotContains(t, *sent, pb.MsgVoteResp)
			w.run(10 * time.Millisecond)
		}
		w.run(500 * time.Millisecond)
		receive(vote())
		require.Contains(t, *sent, pb.MsgVoteResp)
	}
}

// raft may answer a question in a later term than that in which it was asked.
func TestAnAnswerOfAnotherTermIsNoLease(t *testing.T) {
	w := newWorld(t, 1)
	w.cluster("a", "b", "c")
	n := w.mustLead()
	term, until := n.r.Lease()
	n.r.mu.Lock()
	defer n.r.mu.Unlock()
	ahead := uint64(time.Hour)
	for _, of := range []uint64{term - 1, term + 1} {
		question := binary.LittleEndian.AppendUint64(nil, of)
		question = binary.LittleEndian.AppendUint64(question, ahead)
		n.r.confirmLocked([]raft.ReadState{{RequestCtx: question}})
		require.Equal(t, until, n.r.leaseUntil)
	}
}

// A caller may rely on what is left of a lease after each renewal.
func TestMuchOfALeaseIsLeft(t *testing.T) {
	w := newWorld(t, 1)
	w.cluster("a", "b", "c")
	n := w.mustLead()
	w.run(time.Second)
	least := time.Hour
	for range 1000 {
		w.run(5 * time.Millisecond)
		_, until := n.r.Lease()
		least = min(least, until.Sub(n.Now()))
	}
	require.Greater(t, least, 550*time.Millisecond)
}
