package cluster

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/cluster/election"
)

// fakeElector says what a test wants. It implements election.Elector.
type fakeElector struct {
	election.Elector
	mu      sync.Mutex
	state   election.State
	term    uint64
	leads   bool
	changed chan struct{}
	err     error
	remove  func() error
	hears   func() bool
	leader  string // that others vote for
	trouble string
	between func()   // called once, behind the first load of the State or of the leadership
	handed  []string // to whom the leadership was transferred
	closed  bool
}

func (e *fakeElector) once() {
	e.mu.Lock()
	f := e.between
	e.between = nil
	e.mu.Unlock()
	if f != nil {
		f()
	}
}

func (e *fakeElector) lead(leads bool, term uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leads, e.term = leads, term
}

func (e *fakeElector) State() election.State {
	defer e.once()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state
}

func (e *fakeElector) Leading() (uint64, bool) {
	defer e.once()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.term, e.leads
}

func (e *fakeElector) Lease() (uint64, time.Time) {
	term, leads := e.Leading()
	if !leads {
		return 0, time.Time{}
	}
	return term, time.Now().Add(time.Hour)
}

func (e *fakeElector) Propose(_ context.Context, _ uint64, change func(election.State) (election.State, error)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := change(e.state)
	if err == nil {
		e.state = s
	}
	return err
}

func (e *fakeElector) Transfer(_ context.Context, to string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handed, e.leads = append(e.handed, to), false
	return nil
}

func (e *fakeElector) RemoveMember(context.Context, uint64, string) error { return e.remove() }
func (e *fakeElector) Hears(string) bool                                  { return e.hears == nil || e.hears() }
func (e *fakeElector) Changed() <-chan struct{}                           { return e.changed }
func (e *fakeElector) Trouble() string                                    { return e.trouble }
func (e *fakeElector) Leader() (string, uint64, bool)                     { return e.leader, e.term, e.leader != "" }
func (e *fakeElector) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

func (e *fakeElector) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed, e.leads = true, false
	return nil
}

func (e *fakeElector) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// fakeData has nothing, and notes what it is told. It implements Data.
type fakeData struct {
	Data
	mu       sync.Mutex
	rule     Rule
	has      Inventory
	stepped  func()
	alone    bool // no follower confirms anything
	disk     Disk
	waits    func(method string) // called by the methods that may wait for the disk; nil: the disk is quick
	leads    func()              // called by Lead; nil: nothing
	aside    setAside            // the latest call
	shut     bool                // clients are refused
	behind   error               // result of Caught after Shut
	replaced []string            // by copies of whom
	readies  int                 // calls of Ready
	unready  func(n int) error   // the result of the n-th call; nil: there is no error
}

func (d *fakeData) wait(method string) {
	if d.waits != nil {
		d.waits(method)
	}
}

func (d *fakeData) Inventory() (Inventory, error) {
	d.wait("Inventory")
	return d.has, nil
}

func (d *fakeData) Halt(context.Context) error {
	d.wait("Halt")
	return nil
}

func (d *fakeData) Shut() (uint64, error) {
	d.wait("Shut")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
	return 1, nil
}

func (d *fakeData) Ready() error {
	d.wait("Ready")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readies++
	if d.unready != nil {
		return d.unready(d.readies)
	}
	return nil
}

func (d *fakeData) Open()             {}
func (d *fakeData) Glance() Inventory { return d.has }
func (d *fakeData) Disk() Disk        { return d.disk }

func (d *fakeData) Follow(election.Member, uint64, *Join) {}

func (d *fakeData) Lead(_ uint64, r Rule) (uint64, error) {
	d.wait("Lead")
	d.Require(r)
	if d.leads != nil {
		d.leads()
	}
	return 1, nil
}

// setAside is what SetAside was asked for.
type setAside struct {
	after uint64
	lost  func(log, stamp uint64) bool
}

// SetAside looks at the end of the log only.
func (d *fakeData) SetAside(_, after uint64, lost func(log, stamp uint64) bool) (n int, dir string, err error) {
	d.aside = setAside{after, lost}
	if d.has.Newest > after && lost(d.has.Log, d.has.Newest) {
		n = 1
	}
	return n, "aside", nil
}

func (d *fakeData) Replace(primary election.Member, _ uint64) {
	d.replaced = append(d.replaced, primary.Name)
}

func (d *fakeData) Require(r Rule) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rule = r
}

func (d *fakeData) present() Rule {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rule
}

func (d *fakeData) Confirmed(ctx context.Context, _ uint64) error {
	if d.alone {
		<-ctx.Done()
	}
	return ctx.Err()
}

// Caught fails when a primary that has refused clients waits for the others, as the test wants.
func (d *fakeData) Caught(context.Context, uint16, uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		d.shut = false
		return d.behind
	}
	return nil
}

func (d *fakeData) Fulfilled(context.Context, Rule, uint64) error { return nil }

func (d *fakeData) StepDown(error) {
	d.Require(Rule{})
	if d.stepped != nil {
		d.stepped()
	}
}

// newPrimary returns a member that is the primary of term 1 of a, b and c, with nothing running.
func newPrimary(t *testing.T) (*Node, *fakeElector, *fakeData) {
	t.Helper()
	return newPrimaryWith(t, slog.New(slog.DiscardHandler), func(context.Context, string) (net.Conn, error) { return nil, errAway })
}

func newPrimaryWith(t *testing.T, log *slog.Logger, dial func(context.Context, string) (net.Conn, error)) (*Node, *fakeElector, *fakeData) {
	t.Helper()
	members := []election.Member{{Name: "a", SID: 1}, {Name: "b", SID: 2}, {Name: "c", SID: 3}}
	e := &fakeElector{changed: make(chan struct{}), term: 1, leads: true}
	e.state = election.State{Members: members, Version: 1}.Appoint(election.Appointment{Term: 1, Primary: "a", Start: 1}, 1)
	d := &fakeData{}
	n, err := Open(Options{
		Name: "a", Dir: t.TempDir(), Data: d, Logger: log, Dial: dial,
		Elector: func(election.Transport) (election.Elector, func(string, []byte), error) {
			return e, func(string, []byte) {}, nil
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	n.look()
	require.Eventually(t, func() bool { return n.View().Role == Leading && !n.working().Waiting }, 5*time.Second, time.Millisecond)
	require.NoError(t, n.Serving())
	return n, e, d
}

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
