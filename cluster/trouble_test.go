package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/cluster/election"
	"gotycoon/internal/klog"
)

// shared is a buffer of several writers.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// dials are the ways of the node a to others: b has a mesh of its own, c is away.
type dials struct {
	mu   sync.Mutex
	away bool
	mesh *mesh
	open []net.Conn
}

func (d *dials) dial(_ context.Context, addr string) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away || addr != "b" {
		return nil, errDead
	}
	here, there := net.Pipe()
	d.open = append(d.open, here)
	d.mesh.accept("a", there)
	return here, nil
}

func (d *dials) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = true
	for _, c := range d.open {
		c.Close()
	}
}

func newOther(t *testing.T, status Status) *dials {
	m := newMesh(func(context.Context, string) (net.Conn, error) { return nil, errDead }, slog.New(slog.DiscardHandler))
	m.handle = func(_, method string, _ json.RawMessage) (any, error) {
		if method != callStatus {
			return nil, errors.New("what?")
		}
		return status, nil
	}
	m.take = func(string, []byte) {}
	t.Cleanup(m.close)
	return &dials{mesh: m}
}

// follower returns a, which follows b. The log has what operators see by default, and with -ls.
func follower(t *testing.T, status Status) (*Node, *fakeElector, *dials, *shared) {
	t.Helper()
	log := &shared{}
	b := newOther(t, status)
	n, e, d := newPrimaryWith(t, slog.New(klog.New(klog.Original, log, klog.LevelSystem)), b.dial)
	e.lead(false, 1)
	n.look()
	d.has = Inventory{SID: 1, Marks: Marks{Marks: map[uint64]uint64{9: 5}}, Follows: 9}
	e.mu.Lock()
	e.state = e.state.Appoint(election.Appointment{Term: 2, Primary: "b", Log: 9, Start: 1}, 1)
	e.mu.Unlock()
	n.look()
	require.Equal(t, Following, n.View().Role)
	return n, e, b, log
}

func (n *Node) troubled(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		n.listen()
		return n.Status().Trouble == text
	}, 10*time.Second, time.Millisecond, "it is now %q", n.Status().Trouble)
}

func TestAFollowerTellsThatItsPrimaryIsNotReached(t *testing.T) {
	n, _, b, _ := follower(t, Status{})
	n.troubled(t, "")
	n.mesh.link("c")
	b.leave()
	n.troubled(t, "the primary b does not answer: connection refused; not reached: c (connection refused)")
}

func TestTheLogTellsOfRolesWhateverItsLevel(t *testing.T) {
	_, _, _, log := follower(t, Status{})
	require.Contains(t, log.String(), "[SYSTEM]: cluster: this member is leading (term 1)")
	require.Contains(t, log.String(), "[SYSTEM]: cluster: this member is following b (term 2)")
}

// Only the member that leads the votes knows why a term does not begin.
func TestOthersTellWhyTheLeaderIsNotThePrimary(t *testing.T) {
	n, e, _, log := follower(t, Status{Name: "b", Trouble: "the members have different data"})
	e.mu.Lock()
	e.state.Primary, e.leader = "c", "b"
	e.mu.Unlock()
	n.troubled(t, "b says: the members have different data; the primary c does not answer: connection refused")
	require.Contains(t, log.String(), "cluster: b says: the members have different data")
}

// A follower does not see by itself that the member that leads the votes is not the primary. One look
// may be at a change of the primary.
func TestAFollowerDoubtsALeaderThatIsNotThePrimary(t *testing.T) {
	status := Status{Name: "b", Role: Opening, Trouble: "it waits"}
	n, e, b, _ := follower(t, status)
	e.mu.Lock()
	e.leader = "b"
	e.mu.Unlock()
	for _, want := range []string{"", "b leads the vote and is opening: it waits"} {
		require.Equal(t, want, n.Doubt())
		for range doubtfulLooks {
			require.Empty(t, n.Status().Trouble, "it follows its primary")
			n.listen()
		}
	}
	b.leave()
	n.doubts(t, "b leads the vote and does not answer this server")
	e.mu.Lock()
	e.leader = ""
	e.mu.Unlock()
	n.doubts(t, "")
}

// doubts waits for what a member says of the one that leads the votes.
func (n *Node) doubts(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		n.listen()
		return n.Doubt() == text
	}, 10*time.Second, time.Millisecond, "it is now %q", n.Doubt())
}

func TestAMemberThatWaitsNamesThoseThatItLacks(t *testing.T) {
	n, e, _, log := follower(t, Status{})
	e.trouble = "d was given another list"
	e.mu.Lock()
	e.state.Appointment = election.Appointment{}
	e.mu.Unlock()
	n.mu.Lock()
	n.become(Waiting, 2)
	n.mu.Unlock()
	n.look()
	const none = "no primary has been appointed yet: a majority of the members has to be there, and at the very first start all members"
	n.troubled(t, none+"; d was given another list; not reached: c (connection refused)")
	require.Contains(t, log.String(), "[SYSTEM]: cluster: "+none)
}

// While followers are missing for good, an operator finds the way out in the status.
func TestAPrimaryThatWaitsForFollowersSaysWhatToDo(t *testing.T) {
	n, e, d := newPrimaryWith(t, slog.New(slog.DiscardHandler), func(context.Context, string) (net.Conn, error) { return nil, errDead })
	e.lead(false, 1)
	n.look()
	d.alone = true
	e.lead(true, 2)
	n.mu.Lock()
	n.sealed = 2
	n.mu.Unlock()
	e.mu.Lock()
	e.state = e.state.Appoint(election.Appointment{Term: 2, Primary: "a", Start: 1}, 1)
	e.mu.Unlock()
	n.mesh.link("b")
	for range 2 {
		n.look()
	}
	require.Eventually(t, func() bool { return n.mesh.unreached("b") != "" }, 10*time.Second, time.Millisecond)
	s := n.Status()
	require.Equal(t, Opening, s.Role)
	require.Contains(t, s.Trouble, "waits until 1 follower has the first update of term 2")
	require.Contains(t, s.Trouble, "cluster require 0")
	require.Contains(t, s.Trouble, "not reached: b (connection refused)")
}

// The log needs no line for each percent of a copy.
func TestAProgressIsToldOnce(t *testing.T) {
	log := &shared{}
	n, _, _ := newPrimaryWith(t, slog.New(slog.NewTextHandler(log, nil)), func(context.Context, string) (net.Conn, error) { return nil, errDead })
	for _, text := range []string{"b copies: 7 of 99", "b copies: 70 of 99", "b is away", "b copies: 1 of 99"} {
		n.trying(errors.New(text))
	}
	require.Equal(t, 2, bytes.Count([]byte(log.String()), []byte("b copies")))
	require.Equal(t, 1, bytes.Count([]byte(log.String()), []byte("b is away")))
}

func TestMistakesOfOperatorsAreToldApart(t *testing.T) {
	n, e, _ := newPrimary(t)
	for _, o := range []Order{
		{Do: "nonsense"}, {Do: Switch, Name: "x"}, {Do: Remove, Name: "x"}, {Do: Remove, Name: "a"}, {Do: Require, Number: 3},
		{Do: Add, Member: election.Member{Name: "b"}}, {Do: Add, Member: election.Member{Name: "x", Addr: "x"}},
	} {
		err := n.carryOut(t.Context(), o)
		require.ErrorAs(t, err, new(*Mistake), "%+v", o)
		m := n.mesh
		m.handle = func(string, string, json.RawMessage) (any, error) { return nil, err }
		require.Equal(t, kindMistake, m.answer("b", message{body: []byte("{}")}).kind)
	}
	e.remove = func() error { return errors.New("no majority") }
	require.False(t, errors.As(n.carryOut(t.Context(), Order{Do: Remove, Name: "b"}), new(*Mistake)))
}
