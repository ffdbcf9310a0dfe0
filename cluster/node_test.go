package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/cluster/election"
)

// A connection of the next epoch must not be told the term that has ended: it would not end with
// it.
func TestTheTermEndsBeforeTheNextEpochBegins(t *testing.T) {
	n, e, d := newPrimary(t)
	before, term := n.Epoch(), uint64(1)
	d.stepped = func() {
		require.Greater(t, n.Epoch(), before)
		term = n.Term()
	}
	e.lead(false, 1)
	n.look()
	require.Zero(t, term, "a stream that begins in the new epoch says that it is of the term that is over")
}

// A removal of which nobody knows whether it was committed may take place later. Until then the
// removed member must not count.
func TestARemovalThatMayStillBeCommittedIsHeeded(t *testing.T) {
	n, e, d := newPrimary(t)
	e.remove = func() error { return election.ErrUnknown }
	require.ErrorIs(t, n.carryOut(t.Context(), Order{Do: Remove, Name: "c"}), election.ErrUnknown)
	n.look()
	require.Equal(t, []uint16{2}, d.present().Counts)
}

// A look that began before an order was carried out must not bring the former rule back.
func TestALookThatIsLateDoesNotCountAFormerMember(t *testing.T) {
	n, e, d := newPrimary(t)
	e.mu.Lock()
	e.between = func() { // c is removed while look is on its way
		e.mu.Lock()
		defer e.mu.Unlock()
		e.state.Members = e.state.Members[:2]
	}
	e.mu.Unlock()
	n.look()
	require.Equal(t, []uint16{2}, d.present().Counts)
}

// What a leader knows of the State when it begins to lead is newer than what it knew before.
func TestATakeoverHeedsTheRuleThatTheLeaderKnows(t *testing.T) {
	n, e, d := newPrimary(t)
	e.lead(false, 1)
	n.look()
	d.has = Inventory{SID: 1, Marks: Marks{Marks: map[uint64]uint64{9: 5}}}
	e.mu.Lock()
	e.state = e.state.Appoint(election.Appointment{Term: 2, Primary: "b", Log: 9, Start: 1}, 2)
	e.between = func() { // b has asked for fewer followers, and this member hears of it as it is elected
		e.mu.Lock()
		defer e.mu.Unlock()
		e.state.Required, e.leads, e.term = 0, true, 3
	}
	e.mu.Unlock()
	n.look()
	require.Equal(t, uint64(2), e.State().Term, "one sealed member of three was enough, by a rule that was over")
}

// The rule of an order is for a primary only. A former one would wait for followers that it has
// not.
func TestAnOrderLeavesTheRuleOfAFormerPrimaryAlone(t *testing.T) {
	n, e, d := newPrimary(t)
	e.lead(false, 1)
	n.look()
	require.Error(t, n.byRule(t.Context(), 1, func(r Rule) Rule { r.Required = 1; return r }, func() error { return nil }))
	require.Zero(t, d.present().Required)
}

// A primary that ceased to serve before it knows whether the other member can take over would leave
// the clients without one until an election.
func TestAPrimaryServesUntilItHearsFromItsSuccessor(t *testing.T) {
	n, e, _ := newPrimary(t)
	looks := 0
	ctx, cancel := context.WithCancel(t.Context())
	e.hears = func() bool {
		require.NoError(t, n.Serving())
		if looks++; looks == 3 {
			cancel()
		}
		return false
	}
	require.ErrorContains(t, n.carryOut(ctx, Order{Do: Switch, Name: "b"}), "b does not answer the other members")
	require.NoError(t, n.Serving())
}

// The last member of a new cluster has the data that the others followed, and is sealed a moment
// before the elector has heard of it.
func TestATransferWaitsUntilTheOtherMemberIsHeard(t *testing.T) {
	n, e, _ := newPrimary(t)
	looks := 0
	e.hears = func() bool {
		require.Empty(t, e.handed)
		looks++
		return looks == 3
	}
	require.NoError(t, n.transfer("b"))
	require.Equal(t, 3, looks)
	require.Equal(t, []string{"b"}, e.handed)
}

// A member whose server ID is not known yet does not count: a program that follows without an ID
// has the same.
func TestAMemberWithoutAServerIDDoesNotCount(t *testing.T) {
	r := ruleOf(election.State{Members: []election.Member{{Name: "a", SID: 1}, {Name: "b"}}, Appointment: election.Appointment{Primary: "a"}})
	require.Empty(t, r.Counts)
}

// A member with data from no term has lost what it had, or never had any.
func TestAnEmptyMemberSaysNothingOfWhatWasAcknowledged(t *testing.T) {
	st := election.State{Required: 1, Members: []election.Member{{Name: "a", SID: 1}, {Name: "b", SID: 2}, {Name: "c", SID: 3}}}
	st = st.Appoint(election.Appointment{Term: 1, Primary: "a", Start: 1, Log: 9}, 1)
	all := []sealed{
		{member: st.Members[1], has: Inventory{SID: 2, Empty: true}}, // its disk was replaced
		{member: st.Members[2], has: Inventory{SID: 3}, at: Position{Term: 1, Stamp: 5}},
	}
	require.Error(t, enough(st, all))
}

func TestOfTwoMembersWithOneServerIDTheKnownOneCounts(t *testing.T) {
	st := election.State{Required: 1, Members: []election.Member{{Name: "a", SID: 1}, {Name: "b", SID: 2}, {Name: "c"}}}
	all := func() []sealed {
		at := Position{Term: 1, Stamp: 5}
		return []sealed{{member: st.Members[0], has: Inventory{SID: 1}, at: at}, {member: st.Members[1], has: Inventory{SID: 2}, at: at},
			{member: st.Members[2], has: Inventory{SID: 2}, at: Position{Term: 1, Stamp: 9}}}
	}
	_, err := choose(st, all(), "a")
	require.ErrorContains(t, err, "the members b and c have the same server ID, 2", "a new cluster")
	st = st.Appoint(election.Appointment{Term: 1, Primary: "a", Start: 1, Log: 9}, 1)
	best, err := choose(st, all(), "a")
	require.NoError(t, err)
	require.Equal(t, "a", best.member.Name)
}

// A former primary may have lost its newest updates in a power cut: it alone does not end the wait
// for the others.
func TestTheFormerPrimaryAloneIsNotPlenty(t *testing.T) {
	st := election.State{Members: []election.Member{{Name: "a", SID: 1}, {Name: "b", SID: 2}, {Name: "c", SID: 3}}}
	st = st.Appoint(election.Appointment{Term: 1, Primary: "a", Start: 1, Log: 9}, 1)
	at := Position{Term: 1, Stamp: 5}
	all := []sealed{{member: st.Members[0], has: Inventory{SID: 1, Marks: Marks{Log: 9}}, at: at}}
	require.NoError(t, enough(st, all))
	require.False(t, plenty(st, all))
	all = append(all, sealed{member: st.Members[1], at: at}, sealed{member: st.Members[2], at: at})
	require.True(t, plenty(st, all))
}

// After a failed disk only a new start helps, so the server ends, as after a failed update log.
func TestAFailedElectorIsTold(t *testing.T) {
	n, e, _ := newPrimary(t)
	n.look()
	select {
	case <-n.Failed():
		t.Fatal(n.Err())
	default:
	}
	full := errors.New("no space left on device")
	e.mu.Lock()
	e.err = full
	e.mu.Unlock()
	n.look()
	n.look()
	<-n.Failed()
	require.Equal(t, full, n.Err())
	require.ErrorIs(t, n.Serving(), ErrNotPrimary)
}

// A primary that was appointed first of all and has begun nothing leaves a cluster that can begin.
func TestAClusterBeginsAfterAnAppointmentWithoutATerm(t *testing.T) {
	st := election.State{Required: 1, Members: []election.Member{{Name: "a", SID: 1}, {Name: "b", SID: 2}, {Name: "c", SID: 3}}}
	st = st.Appoint(election.Appointment{Term: 1, Primary: "a", Start: 1, Log: 9}, 1)
	var all []sealed
	for _, m := range st.Members {
		all = append(all, sealed{member: m, has: Inventory{SID: m.SID, Empty: true}})
	}
	best, err := choose(st, all, "b")
	require.NoError(t, err)
	require.Equal(t, "b", best.member.Name)
	_, err = choose(st, all[:2], "b")
	require.Error(t, err, "the third may have something")
}
