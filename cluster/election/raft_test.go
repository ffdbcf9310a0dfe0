package election

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
)

func TestASingleMemberLeadsAtOnce(t *testing.T) {
	w := newWorld(t, 1)
	w.cluster("a")
	w.mustLead()
	require.Zero(t, w.now)
	require.EqualValues(t, 1, w.mustPropose().Required)
	w.nodes["a"].kill()
	w.nodes["a"].start()
	require.EqualValues(t, 1, w.mustLead().r.State().Required, "the State outlives a restart")
}

func TestStateSurvivesTheDeathOfAll(t *testing.T) {
	for _, die := range []func(*simNode){(*simNode).kill, (*simNode).cutPower} {
		w := newWorld(t, 2)
		w.cluster("a", "b", "c")
		w.nodes["c"].kill()
		want := w.mustPropose() // a and b have it
		die(w.nodes["a"])
		die(w.nodes["b"])
		w.nodes["c"].start()
		w.run(10 * time.Second)
		require.Nil(t, w.leader(), "c alone is no majority")
		w.nodes["a"].start()
		got := w.mustLead()
		require.Equal(t, "a", got.name, "c lacks the State, so it cannot win")
		require.Equal(t, want, got.r.State())
	}
}

func TestAFormerLeaderCannotPropose(t *testing.T) {
	w := newWorld(t, 3)
	w.cluster("a", "b", "c")
	n := w.mustLead()
	term, _ := n.r.Leading()
	w.mustPropose()
	n.pause()
	next := w.mustLead()
	require.NotSame(t, n, next)
	w.mustPropose()
	n.paused = false // it is awake, and none of the messages has reached it
	got, leads := n.r.Leading()
	require.True(t, leads, "it knows nothing yet")
	require.Equal(t, term, got)
	lease, _ := n.r.Lease()
	require.Zero(t, lease)
	p := n.propose()
	require.Equal(t, errPending, p.err)
	n.resume()
	require.True(t, w.runUntil(time.Second, func() bool { return p.err != errPending }))
	require.ErrorIs(t, p.err, ErrUnknown)
	require.ErrorIs(t, n.propose().err, ErrNotLeading)
	w.converge()
}

// A leader without a majority knows within two election timeouts that it leads no more, and its
// lease is over long before.
func TestALeaderThatIsCutOffStepsDown(t *testing.T) {
	w := newWorld(t, 4)
	w.cluster("a", "b", "c")
	n := w.mustLead()
	w.isolate(n.name, true, true)
	require.True(t, w.runUntil(time.Second, func() bool { l, _ := n.r.Lease(); return l == 0 }))
	_, leads := n.r.Leading()
	require.True(t, leads)
	require.True(t, w.runUntil(2*time.Second, func() bool { _, ok := n.r.Leading(); return !ok }))
	p := n.propose()
	require.ErrorIs(t, p.err, ErrNotLeading)
}

// A leader that hears the others and is not heard, and the reverse, loses its lease; another leads.
func TestOneWayPartitions(t *testing.T) {
	for _, in := range []bool{true, false} {
		w := newWorld(t, 5)
		w.cluster("a", "b", "c")
		n := w.mustLead()
		w.isolate(n.name, in, !in)
		require.True(t, w.runUntil(time.Second, func() bool { l, _ := n.r.Lease(); return l == 0 }))
		require.NotSame(t, n, w.mustLead())
		w.heal()
		w.converge()
	}
}

func TestTransfer(t *testing.T) {
	w := newWorld(t, 6)
	w.cluster("a", "b", "c", "w")
	n := w.mustLead()
	w.mustPropose()
	require.ErrorIs(t, n.transfer("w"), ErrRefused)
	require.ErrorIs(t, n.transfer("nobody"), ErrRefused)
	require.ErrorIs(t, n.transfer(n.name), ErrRefused)
	lease, _ := n.r.Lease()
	require.NotZero(t, lease, "a refused transfer costs nothing")
	to := map[string]string{"a": "b", "b": "c", "c": "a"}[n.name]
	began := w.now
	require.NoError(t, n.transfer(to))
	lease, _ = n.r.Lease()
	require.Zero(t, lease)
	require.ErrorIs(t, n.propose().err, ErrNotLeading)
	require.Equal(t, to, w.mustLead().name)
	require.Less(t, w.now-began, 200*time.Millisecond)
	w.converge()
}

// The vote of a transfer passes the voters' promise. So after a transfer that failed the leader
// must not have a lease in its term again: the vote may come late.
func TestATransferThatFailsEndsTheTerm(t *testing.T) {
	w := newWorld(t, 7)
	w.cluster("a", "b", "c")
	n := w.mustLead()
	term, _ := n.r.Leading()
	to := map[string]string{"a": "b", "b": "c", "c": "a"}[n.name]
	require.NoError(t, n.transfer(to))
	w.isolate(to, true, true)
	w.mustLead()
	again, _ := w.mustLead().r.Lease()
	require.Greater(t, again, term+1, "a vote for the term after may be on its way")
	w.heal()
	w.converge()
}

func TestAddAndRemoveAMember(t *testing.T) {
	w := newWorld(t, 8)
	w.cluster("a")
	for range 50 {
		w.mustPropose()
	}
	for _, name := range []string{"b", "c"} {
		w.mustChange(func(n *simNode) *proposed { return n.change(adding(Member{Name: name, Addr: name})) })
		w.run(10 * time.Second)
		require.Equal(t, "a", w.leader().name, "a member that does not start stops nothing")
		m, _ := w.leader().r.State().Member(name)
		require.True(t, m.Joining)
		again := w.leader().change(adding(Member{Name: name, Addr: name}))
		require.ErrorContains(t, again.err, "a member already")

		w.server(name, nil).start()
		require.True(t, w.runUntil(5*time.Second, func() bool {
			m, _ := w.leaderState().Member(name)
			return !m.Joining
		}), "the leader gives the vote by itself")
		require.Equal(t, w.leaderState().Members, w.nodes["a"].r.State().Members)
	}
	w.converge()
	w.nodes["a"].kill()
	l := w.mustLead()
	require.NotEqual(t, "a", l.name)
	state := w.mustChange(func(n *simNode) *proposed { return n.change(removing("a")) })
	require.Len(t, state.Members, 2)
	require.ErrorContains(t, w.leader().change(removing("a")).err, "no member")
	w.nodes["a"].start()
	w.run(10 * time.Second)
	require.Same(t, l, w.leader(), "a member that was removed does not disturb")
	require.ErrorIs(t, w.nodes["a"].r.Err(), ErrRemoved, "and is told")
	w.converge()
}

// A member whose directory is lost while the others go on is not let in under its old number.
func TestAMemberThatLostItsDirectoryIsStopped(t *testing.T) {
	w := newWorld(t, 9)
	w.cluster("a", "b", "c")
	w.converge()
	n := w.mustLead()
	lost := map[string]string{"a": "b", "b": "c", "c": "a"}[n.name]
	members := w.nodes[lost].members
	for _, list := range [][]Member{members, nil} {
		w.nodes[lost].kill()
		w.server(lost, list).start()
		w.run(2 * time.Second)
		require.ErrorIs(t, w.nodes[lost].r.Err(), ErrLost)
	}
	w.mustChange(func(n *simNode) *proposed { return n.change(removing(lost)) })
	w.nodes[lost].kill()
	w.mustChange(func(n *simNode) *proposed { return n.change(adding(Member{Name: lost, Addr: lost})) })
	w.server(lost, nil).start()
	require.True(t, w.runUntil(5*time.Second, func() bool {
		m, _ := w.leaderState().Member(lost)
		return !m.Joining
	}))
	w.converge()
}

// A member that was removed, and added again while it was away, must not go on with its old number.
func TestAnOldNumberIsNoticed(t *testing.T) {
	w := newWorld(t, 10)
	w.cluster("a", "b", "c")
	w.converge()
	n := w.mustLead()
	name := map[string]string{"a": "b", "b": "c", "c": "a"}[n.name]
	w.nodes[name].kill()
	w.mustChange(func(n *simNode) *proposed { return n.change(removing(name)) })
	w.mustChange(func(n *simNode) *proposed { return n.change(adding(Member{Name: name, Addr: name})) })
	w.nodes[name].start()
	w.run(2 * time.Second)
	require.ErrorIs(t, w.nodes[name].r.Err(), ErrRemoved)
}

// Two lists of members would be two clusters that know each other.
func TestOtherListsOfMembersAreOtherClusters(t *testing.T) {
	w := newWorld(t, 11)
	w.apart = true
	three := []Member{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	w.server("a", three).start()
	w.server("b", three[:2]).start()
	w.run(20 * time.Second)
	require.Nil(t, w.leader())
	require.Contains(t, w.trace.String(), "another list of members")
}

// A typo in the list of a new member is mended by starting it again. The world checks that nobody
// leads a term that another one leads.
func TestAListThatNobodyCountsOnIsReplaced(t *testing.T) {
	w := newWorld(t, 13)
	w.apart = true
	three := []Member{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	typo := []Member{{Name: "a"}, {Name: "x"}, {Name: "c"}}
	w.server("a", three).start()
	w.server("b", three).start()
	c := w.server("c", typo)
	c.start()
	w.run(10 * time.Second)
	require.NotNil(t, w.leader())
	require.Contains(t, c.r.Trouble(), "another list of members than here (a, c, x) was given to")
	require.Contains(t, w.nodes["a"].r.Trouble(), "another list of members than here (a, b, c) was given to c")
	c.kill()
	c.members = three
	c.start()
	require.True(t, w.runUntil(20*time.Second, func() bool {
		_, _, known := c.r.Leader()
		return known && c.r.Trouble() == ""
	}))
	w.apart = false
	w.converge()
	w.run(20 * time.Second)
	require.Empty(t, w.nodes["a"].r.Trouble(), "the mended member is not complained of for ever")
}

// What a member has told others of its list stands: a vote, an entry, or that it knows a term.
func TestAListThatOthersCountOnIsKept(t *testing.T) {
	w := newWorld(t, 14)
	w.cluster("a", "b", "c")
	w.converge()
	for _, n := range w.nodes {
		n.kill()
	}
	for _, n := range w.nodes {
		n.members = append(slices.Clone(n.members), Member{Name: "x"})
		n.start()
	}
	w.converge()
	require.Len(t, w.leaderState().Members, 3)
	require.Contains(t, w.trace.String(), "is not the one that this member began with")
}

// With two members and a witness: whoever dies, the rest goes on; the witness never leads. The
// world checks the latter.
func TestWitness(t *testing.T) {
	w := newWorld(t, 12)
	w.cluster("a", "b", "w")
	for range 5 {
		n := w.mustLead()
		w.converge()
		n.kill()
		require.NotEqual(t, n.name, w.mustLead().name)
		w.mustPropose()
		n.start()
		w.converge()
	}
	w.nodes["w"].kill()
	w.converge()
	require.NotContains(t, w.trace.String(), fmt.Sprintf("%x became leader", hash("test", "w")),
		"nor did it lead in raft, for its log was never newer")
}

// The witness has a State that the surviving member lacks. It must give it to that member.
func TestAWitnessDoesNotBlockTheOnlyMember(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		w.cluster("a", "b", "w")
		w.converge()
		n := w.mustLead()
		other := w.nodes[map[string]string{"a": "b", "b": "a"}[n.name]]
		w.isolate(other.name, true, true)
		want := w.mustPropose()
		n.kill()
		w.heal()
		require.Same(t, other, w.mustLead())
		require.Equal(t, want, other.r.State())
	}
}

// Messages that are for raft's own use in a process, broken or of others have no effect.
func TestStrangeMessages(t *testing.T) {
	w := newWorld(t, 13)
	w.cluster("a", "b", "c")
	n := w.mustLead()
	r := n.r
	send := func(edit func(*envelope)) {
		e := envelope{
			cluster: hash("test"), list: r.disk.who.List, to: n.name, from: "b", addr: "b:1",
			message: &pb.Message{
				Type: pb.MsgHeartbeat.Enum(), To: new(r.disk.who.ID), From: new(uint64(1)),
				Term: new(uint64(1000)),
			},
		}
		edit(&e)
		b, err := e.encode()
		require.NoError(t, err)
		r.Receive("b", b)
		for i := range b {
			r.Receive("b", b[:i])
		}
	}
	send(func(e *envelope) { e.cluster++ })
	send(func(e *envelope) { e.list++ })
	send(func(e *envelope) { e.to = "x" })
	send(func(e *envelope) { e.from = "x" })
	send(func(e *envelope) { e.message.Type = pb.MsgTransferLeader.Enum() })
	send(func(e *envelope) { e.message.Type = pb.MsgHup.Enum() })
	send(func(e *envelope) { e.message.Type = pb.MsgProp.Enum() })
	w.run(5 * time.Second)
	require.Same(t, n, w.leader())
}
