package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/cluster/election"
)

var errServices = errors.New("no space left on device")

func (d *fakeData) failReady(until int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readies, d.unready = 0, func(n int) error {
		if n <= until {
			return errServices
		}
		return nil
	}
}

func (d *fakeData) tries() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.readies
}

func (d *fakeData) opens() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opened
}

// appointAgain has the primary step down, and makes it the primary of term 3.
func appointAgain(n *Node, e *fakeElector) {
	e.lead(false, 1)
	n.look()
	e.mu.Lock()
	e.state = e.state.Appoint(election.Appointment{Term: 3, Primary: "a", Start: 1}, 1)
	e.leads, e.term = true, 3
	e.mu.Unlock()
	n.look()
}

// A primary of records alone would have no quotas, sequences and tokens.
func TestAPrimaryWhoseServicesCannotTakeOverTriesAgain(t *testing.T) {
	n, e, d := newPrimary(t)
	d.failReady(2)
	begun, goOn := d.hangFrom(t, "Ready", 3)
	appointAgain(n, e)
	<-begun
	s := n.Status()
	require.Equal(t, Opening, s.Role)
	require.Contains(t, s.Trouble, "the services of a cannot take over (tries: 2), so a serves no clients: no space left on device")
	require.ErrorIs(t, n.Serving(), ErrNotPrimary)
	goOn()
	require.Eventually(t, func() bool { return n.View().Role == Leading }, 5*time.Second, time.Millisecond)
	require.NoError(t, n.Serving())
	require.Empty(t, n.Trouble())
	require.Empty(t, e.transfers())
}

func TestAPrimaryWhoseServicesNeverTakeOverHandsOver(t *testing.T) {
	n, e, d := newPrimary(t)
	others(t, n, Inventory{Lag: 3})
	d.failReady(1000)
	appointAgain(n, e)
	require.Eventually(t, func() bool { return len(e.transfers()) == 1 }, 5*time.Second, time.Millisecond)
	require.Equal(t, []string{"b"}, e.transfers())
	require.Equal(t, mostUnready, d.tries())
	s := n.Status()
	require.Equal(t, Waiting, s.Role)
	require.Contains(t, s.Trouble, "its services cannot take over: no space left on device, and b takes over")
	require.ErrorIs(t, n.Serving(), ErrNotPrimary)
}

// Where nobody can take over, the member serves records alone, says why, and goes on trying.
func TestAPrimaryWhoseServicesCannotTakeOverServesRecordsWhereNobodyElseCan(t *testing.T) {
	n, e, d := newPrimary(t)
	d.failReady(mostUnready)
	begun, goOn := d.hangFrom(t, "Ready", mostUnready+1)
	appointAgain(n, e)
	<-begun
	require.Empty(t, e.transfers())
	require.NoError(t, n.Serving())
	s := n.Status()
	require.Equal(t, Leading, s.Role)
	require.True(t, s.Unready)
	require.Contains(t, s.Trouble, "a serves records alone: no space left on device")
	opened := d.opens()
	goOn()
	require.Eventually(t, func() bool { return !n.Status().Unready }, 5*time.Second, time.Millisecond)
	require.Empty(t, n.Trouble())
	require.Equal(t, opened+1, d.opens(), "the services are let in")
	require.Empty(t, e.transfers())
}

// A record that is damaged is damaged on all members. Were each to hand over to the next, there
// would be no primary, and a new term every moment.
func TestNobodyHandsOverToAMemberWhoseServicesHaveFailed(t *testing.T) {
	n, e, d := newPrimary(t)
	b := others(t, n, Inventory{Lag: 3})["b"]
	b.mu.Lock()
	b.unready = true
	b.mu.Unlock()
	d.failReady(1000)
	appointAgain(n, e)
	require.Eventually(t, func() bool { return n.View().Role == Leading }, 5*time.Second, time.Millisecond)
	require.Empty(t, e.transfers())
	require.NoError(t, n.Serving())
	e.lead(false, 3)
	n.look()
	require.ErrorIs(t, n.Serving(), ErrNotPrimary)
}

// A switchover that comes to nothing, on a member whose services do not come back, leaves no member
// that neither serves nor hands over.
func TestASwitchoverThatFailsIsTakenBack(t *testing.T) {
	n, e, d := newPrimary(t)
	others(t, n, Inventory{})
	for _, until := range []int{0, 1} {
		d.behind = errors.New("it is slow")
		d.failReady(until)
		require.ErrorContains(t, n.carryOut(t.Context(), Order{Do: Switch, Name: "b"}), "it is slow")
		if until == 0 {
			require.NoError(t, n.Serving(), "it serves again when the order is answered")
		}
		require.Eventually(t, func() bool { return n.View().Role == Leading }, 5*time.Second, time.Millisecond)
		require.NoError(t, n.Serving())
	}
	d.failReady(1000)
	require.ErrorContains(t, n.carryOut(t.Context(), Order{Do: Switch, Name: "b"}), "it is slow")
	require.Eventually(t, func() bool { return len(e.transfers()) == 1 }, 5*time.Second, time.Millisecond)
}
