package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/cluster/election"
	"gotycoon/internal/vfs"
)

// noNotes is a disk on which nobody can note that a term has begun.
type noNotes struct{ vfs.FS }

func (d noNotes) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	if strings.Contains(name, "begun") && flag&os.O_CREATE != 0 {
		return nil, errors.New("the process has died")
	}
	return d.FS.OpenFile(name, flag, perm)
}

// A primary that dies between the first update of its term and the note of it has an update that no
// other member has, and that its position does not tell of: it is put aside when another member
// leads, and the next primary's data replace what is here.
func TestAPrimaryThatDiesBeforeItNotesItsTerm(t *testing.T) {
	const log, claim = 7, 51
	members := []election.Member{{Name: "a", SID: 1}, {Name: "b", SID: 2}, {Name: "c", SID: 3}}
	state := election.State{Members: members, Version: 1}
	state = state.Appoint(election.Appointment{Term: 1, Primary: "b", Start: 1, Log: 9}, 1)
	d := &fakeData{has: Inventory{SID: 1, Marks: Marks{Log: log, Last: 50, Newest: 50, Marks: map[uint64]uint64{9: 40}}}}
	d.leads = func() { d.has.Last, d.has.Newest = claim, claim }
	dir := t.TempDir()
	open := func(fs vfs.FS) (*Node, *fakeElector) {
		e := &fakeElector{changed: make(chan struct{}), state: state, term: 2, leads: true}
		n, err := Open(Options{
			Name: "a", Dir: dir, FS: fs, Data: d,
			Dial:    func(context.Context, string) (net.Conn, error) { return nil, errAway },
			Elector: func(election.Transport) (election.Elector, func(string, []byte), error) { return e, nil, nil },
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, n.Close()) })
		return n, e
	}

	n, e := open(noNotes{vfs.OS{}})
	others(t, n, Inventory{SID: 2, Marks: Marks{Log: 8, Last: 40, Newest: 40, Marks: map[uint64]uint64{9: 40}}})
	n.look()
	require.Equal(t, uint64(2), e.State().Term)
	require.Equal(t, uint64(claim), d.has.Newest, "the first update of the term")
	require.Equal(t, Waiting, n.View().Role)
	require.ErrorIs(t, n.Serving(), ErrNotPrimary)
	require.Zero(t, n.Term(), "no stream is of the term")
	state = e.State()

	n, e = open(vfs.OS{}) // the next process, which nobody votes for
	e.lead(false, 2)
	n.look()
	require.Equal(t, Waiting, n.View().Role, "it was the primary of the term, and is it no more")
	has, err := n.inventory()
	require.NoError(t, err)
	require.Equal(t, Position{Term: 1, Stamp: 40}, history(state.History).locate("a", has.Marks))
	e.mu.Lock()
	e.state = state.Appoint(election.Appointment{Term: 3, Primary: "b", Log: 9, FromLog: 9, From: 40, Start: 41}, 1)
	e.mu.Unlock()
	n.look()
	require.Equal(t, Following, n.View().Role)
	require.Equal(t, uint64(50), d.aside.after)
	require.True(t, d.aside.lost(log, claim))
	require.False(t, d.aside.lost(9, 40))
	require.Equal(t, []string{"b"}, d.replaced)
	require.Equal(t, 1, n.Status().Aside.Updates)

	d.has.Marks.Marks[9], d.replaced = 41, nil // the first update of term 3 is here
	d.aside.after = 0
	e.mu.Lock()
	e.state = e.state.Appoint(election.Appointment{Term: 4, Primary: "c", Log: 11, FromLog: 9, From: 41, Start: 42}, 1)
	e.mu.Unlock()
	n.look()
	require.Equal(t, Following, n.View().Role)
	require.Zero(t, d.aside.after, "it is not looked for again")
	require.Empty(t, d.replaced)
}

// A member that could not begin its term at all has nothing to put aside.
func TestAMemberThatHasClaimedNothingGoesOn(t *testing.T) {
	h := history{{Term: 1, Primary: "b", Start: 1, Log: 9}, {Term: 2, Primary: "a", Start: 51, Log: 7, FromLog: 9, From: 40}}
	m := Marks{Log: 7, Last: 50, Newest: 50, Marks: map[uint64]uint64{9: 40}}
	_, may := h.unnoted("a", m, h.locate("a", m))
	require.False(t, may)
	m.Newest = 51
	after, may := h.unnoted("a", m, h.locate("a", m))
	require.True(t, may)
	require.Equal(t, uint64(50), after)
	m.Begun = 2
	_, may = h.unnoted("a", m, h.locate("a", m))
	require.False(t, may, "its position says it")
}

// The history keeps the latest appointments only. A member that was away for longer may have an
// update that the others do not have, and nothing tells which one.
func TestAMemberThatWasAwayForTooLongDoesNotFollow(t *testing.T) {
	n, e, d := newPrimary(t)
	e.lead(false, 1)
	n.look()
	st := e.State()
	logs := map[string]uint64{"b": 9, "c": 8}
	st.History = nil
	for term := uint64(70); term < 134; term++ {
		p := []string{"b", "c"}[term%2]
		st.Appointment = election.Appointment{Term: term, Primary: p, Log: logs[p], FromLog: 9, From: 100, Start: 101}
		st.History = append(st.History, st.Appointment)
	}
	d.has = Inventory{SID: 1, Follows: st.Log, Marks: Marks{Log: 7, Newest: 60, Begun: 1, Marks: map[uint64]uint64{9: 40, 8: 30}}}
	e.mu.Lock()
	e.state = st
	e.mu.Unlock()
	n.look()
	require.Equal(t, Waiting, n.View().Role)
	require.Contains(t, n.Trouble(), "it replaces no data by itself")
	require.Empty(t, d.replaced)
}
