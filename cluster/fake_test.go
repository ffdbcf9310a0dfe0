package cluster

import (
	"context"
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
	opened   int                 // calls of Open
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

func (d *fakeData) Open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened++
}

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
