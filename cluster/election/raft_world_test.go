package election

import (
	"bytes"
	"container/heap"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"gotycoon/internal/vfs/crashfs"
)

// A world is a cluster in fake time: one goroutine, one queue of events, and everything that is
// random comes from one seed. After every event it checks what must hold at all times.
type world struct {
	t    *testing.T
	rnd  *mathrand.Rand
	now  time.Duration
	seq  int
	todo events

	nodes map[string]*simNode
	cut   map[[2]string]bool // from, to: messages are lost
	loss  float64
	delay time.Duration // the longest way of a message

	leaders  map[uint64]string // by term
	states   map[uint64]string // every State that anybody has seen, by version
	newest   uint64            // the highest version that was acknowledged to a proposer
	proposed int
	apart    bool // the servers do not have one State
	trace    bytes.Buffer
}

// A simNode is a server: what survives a crash, and the elector, which does not.
type simNode struct {
	w       *world
	name    string
	rate    float64 // of its clock
	root    string  // directory of fs
	fs      *crashfs.FS
	members []Member // list that it is started with

	r      *Raft // nil while it is down
	life   int   // number of the start
	paused bool
	queue  []func()      // what came during the pause
	until  time.Duration // end of the last lease, in the world's time
}

type event struct {
	at  time.Duration
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

// newWorld makes a world without servers. The random numbers of raft come from the seed too.
func newWorld(t *testing.T, seed uint64) *world {
	old := rand.Reader
	key := [32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)}
	rand.Reader = mathrand.NewChaCha8(key)
	w := &world{
		t: t, rnd: mathrand.New(mathrand.NewPCG(seed, 1)), delay: 5 * time.Millisecond,
		nodes: map[string]*simNode{}, cut: map[[2]string]bool{}, leaders: map[uint64]string{},
		states: map[uint64]string{},
	}
	t.Cleanup(func() {
		rand.Reader = old
		for _, n := range w.nodes {
			if n.r != nil {
				_ = n.r.Close()
			}
		}
		if t.Failed() {
			t.Logf("seed %d", seed)
			if name := os.Getenv("GOTYCOON_ELECTION_TRACE"); name != "" {
				require.NoError(t, os.WriteFile(name, w.trace.Bytes(), 0o644))
			}
		}
	})
	return w
}

// cluster makes servers a, b, … and starts them. Names that begin with w are witnesses.
func (w *world) cluster(names ...string) {
	var members []Member
	for i, name := range names {
		members = append(members, Member{
			Name: name, Addr: name + ":1978", SID: uint16(i + 1), Witness: name[0] == 'w',
		})
	}
	for _, name := range names {
		w.server(name, members).start()
	}
}

// server makes a server that is down.
func (w *world) server(name string, members []Member) *simNode {
	n := &simNode{w: w, name: name, rate: 1, root: w.t.TempDir(), members: members}
	var err error
	n.fs, err = crashfs.New(n.root)
	require.NoError(w.t, err)
	w.nodes[name] = n
	return n
}

func (w *world) names() []string { return slices.Sorted(maps.Keys(w.nodes)) }

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.todo, event{w.now + d, w.seq, do})
}

func (w *world) logf(format string, args ...any) {
	fmt.Fprintf(&w.trace, "%v "+format+"\n", append([]any{w.now}, args...)...)
}

// run lets so much time pass.
func (w *world) run(d time.Duration) { w.runUntil(d, func() bool { return false }) }

// runUntil lets time pass until the condition holds, and reports whether it came to hold.
func (w *world) runUntil(d time.Duration, condition func() bool) bool {
	end := w.now + d
	for !condition() {
		if len(w.todo) == 0 || w.todo[0].at > end {
			w.now = end
			return condition()
		}
		e := heap.Pop(&w.todo).(event)
		w.now = max(w.now, e.at)
		e.do()
		w.check()
	}
	return true
}

// check checks what must hold at all times.
func (w *world) check() {
	for _, name := range w.names() {
		n := w.nodes[name]
		if n.r == nil {
			continue
		}
		if term, ok := n.r.Leading(); ok {
			if other, known := w.leaders[term]; known && other != name {
				w.t.Fatalf("term %d has two leaders, %s and %s", term, other, name)
			}
			if _, known := w.leaders[term]; !known && n.r.State().Version < w.newest {
				w.t.Fatalf("%s leads term %d and does not know version %d of the State", name, term, w.newest)
			}
			w.leaders[term] = name
			if n.r.selfLocked().Witness {
				w.t.Fatalf("the witness %s leads term %d", name, term)
			}
		}
		w.checkState(n)
		w.checkLease(n)
	}
}

func (w *world) checkState(n *simNode) {
	s := n.r.shown.Load().state
	text, err := json.Marshal(s)
	require.NoError(w.t, err)
	if old, known := w.states[s.Version]; known && old != string(text) && !w.apart {
		w.t.Fatalf("version %d is %s at %s, and was %s", s.Version, text, n.name, old)
	}
	w.states[s.Version] = string(text)
}

func (w *world) checkLease(n *simNode) {
	term, until := n.r.Lease()
	if term == 0 {
		return
	}
	if v := n.r.State().Version; v < w.newest {
		w.t.Fatalf("%s has a lease and version %d of the State, %d was acknowledged", n.name, v, w.newest)
	}
	n.until = n.worldTime(until)
	for _, m := range w.nodes {
		if m != n && m.until > w.now {
			w.t.Fatalf("%s has a lease of term %d at %v, %s was promised one until %v",
				n.name, term, w.now, m.name, m.until)
		}
	}
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Now implements Clock: the server's own clock, which has a rate of its own.
func (n *simNode) Now() time.Time {
	return epoch.Add(time.Duration(float64(n.w.now) * n.rate))
}

func (n *simNode) worldTime(t time.Time) time.Duration {
	return time.Duration(float64(t.Sub(epoch)) / n.rate)
}

// AfterFunc implements Clock.
func (n *simNode) AfterFunc(d time.Duration, f func()) func() {
	stopped, life := false, n.life
	n.w.after(time.Duration(float64(d)/n.rate), func() {
		n.do(life, func() {
			if !stopped {
				f()
			}
		})
	})
	return func() { stopped = true }
}

// do does something in a life of the server, after its pause if it is paused.
func (n *simNode) do(life int, f func()) {
	switch {
	case n.r == nil || n.life != life:
	case n.paused:
		n.queue = append(n.queue, func() { n.do(life, f) })
	default:
		f()
	}
}

// Send implements Transport.
func (n *simNode) Send(to Member, msg []byte) {
	w := n.w
	if w.rnd.Float64() < w.loss {
		return
	}
	copies := 1
	if w.loss > 0 && w.rnd.IntN(50) == 0 {
		copies = 2
	}
	for range copies {
		w.after(time.Duration(w.rnd.Int64N(int64(w.delay)+1)), func() {
			m := w.nodes[to.Name]
			if m == nil || m.r == nil || w.cut[[2]string{n.name, to.Name}] {
				return
			}
			m.do(m.life, func() { m.r.Receive(n.name, msg) })
		})
	}
}

func (n *simNode) start() {
	n.life++
	n.w.logf("start %s", n.name)
	var log io.Writer = &n.w.trace
	open := func() (*Raft, error) {
		return OpenRaft(RaftConfig{
			Cluster: "test", Name: n.name, Addr: n.name + ":1978", Members: n.members,
			Dir: filepath.Join(n.root, "e"), FS: n.fs, Transport: n, Clock: n,
			Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
	}
	r, err := open()
	if errors.Is(err, crashfs.ErrPowerCut) {
		n.powerBack()
		r, err = open()
	}
	require.NoError(n.w.t, err)
	n.r, n.paused, n.queue = r, false, nil
}

// kill is kill -9: what was written is still there.
func (n *simNode) kill() {
	n.w.logf("kill %s", n.name)
	if n.r != nil {
		require.NoError(n.w.t, n.r.Close())
		n.r = nil
	}
	n.fs.CutAfter(0)
}

// cutPower kills the server; of what it had not synced any part may be lost.
func (n *simNode) cutPower() {
	n.w.logf("power cut %s", n.name)
	n.fs.Cut()
	require.NoError(n.w.t, n.r.Close())
	n.r = nil
	n.powerBack()
}

// powerBack gives the server the disk as the power cut has left it.
func (n *simNode) powerBack() {
	root := n.w.t.TempDir()
	require.NoError(n.w.t, n.fs.Crash(n.w.rnd, root))
	n.root = root
	var err error
	n.fs, err = crashfs.New(root)
	require.NoError(n.w.t, err)
}

func (n *simNode) pause() { n.w.logf("pause %s", n.name); n.paused = true }

func (n *simNode) resume() {
	n.w.logf("resume %s", n.name)
	n.paused = false
	queue := n.queue
	n.queue = nil
	for _, f := range queue {
		f()
		n.w.check()
	}
}

// isolate cuts a server off, in one direction or both.
func (w *world) isolate(name string, in, out bool) {
	w.logf("isolate %s %v %v", name, in, out)
	for other := range w.nodes {
		w.cut[[2]string{other, name}] = w.cut[[2]string{other, name}] || in
		w.cut[[2]string{name, other}] = w.cut[[2]string{name, other}] || out
	}
}

func (w *world) heal() { w.logf("heal"); clear(w.cut) }

// leader returns the server that has a lease, or nil.
func (w *world) leader() *simNode {
	for _, n := range w.nodes {
		if n.r != nil && !n.paused {
			if term, _ := n.r.Lease(); term != 0 {
				return n
			}
		}
	}
	return nil
}

// mustLead waits for a leader with a lease.
func (w *world) mustLead() *simNode {
	w.t.Helper()
	require.True(w.t, w.runUntil(20*time.Second, func() bool { return w.leader() != nil }), "nobody leads")
	return w.leader()
}

// propose begins a proposal without waiting; what happens is noted in the returned result.
func (n *simNode) propose() *proposed {
	w := n.w
	w.proposed++
	value := w.proposed
	term, _ := n.r.Leading()
	return n.change(func(s State) (State, *pb.ConfChange, error) {
		s = s.Appoint(Appointment{Term: term, Primary: n.name, Start: uint64(value)}, value)
		return s, nil, nil
	})
}

// change begins a change of the State.
func (n *simNode) change(e edit) *proposed {
	p := &proposed{err: errPending}
	term, _ := n.r.Leading()
	life := n.life
	version := n.r.State().Version + 1
	_, err := n.r.begin(term, e, func(err error) {
		p.err = err
		if got := n.r.State().Version; err == nil && got < version {
			n.w.t.Errorf("version %d is committed, and %s shows %d", version, n.name, got)
		}
		if err == nil && n.life == life {
			n.w.newest = max(n.w.newest, version)
		}
	})
	if err != nil {
		p.err = err
	}
	n.w.logf("change %d at %s: %v", version, n.name, p.err)
	return p
}

type proposed struct{ err error }

// mustPropose commits a State.
func (w *world) mustPropose() State {
	w.t.Helper()
	return w.mustChange((*simNode).propose)
}

// mustChange commits a change.
func (w *world) mustChange(change func(*simNode) *proposed) State {
	w.t.Helper()
	for range 20 {
		n := w.mustLead()
		p := change(n)
		w.runUntil(5*time.Second, func() bool { return p.err != errPending })
		if p.err == nil {
			return n.r.State()
		}
	}
	w.t.Fatal("no change can be committed")
	return State{}
}

// converge waits until all servers that are up know the newest State.
func (w *world) converge() {
	w.t.Helper()
	want := w.mustPropose().Version
	require.True(w.t, w.runUntil(20*time.Second, func() bool {
		for _, m := range w.leaderState().Members {
			if n := w.nodes[m.Name]; n.r != nil && n.r.State().Version < want {
				return false
			}
		}
		return true
	}), "not all servers learn the newest State")
}

// leaderState returns the State of the server that has a lease.
func (w *world) leaderState() State {
	w.t.Helper()
	return w.mustLead().r.State()
}

// transfer begins a transfer. A caller ends everything under its lease before.
func (n *simNode) transfer(to string) error {
	n.w.logf("transfer %s to %s", n.name, to)
	_, err := n.r.beginTransfer(to)
	if err == nil {
		n.until = 0
	}
	return err
}

var errPending = fmt.Errorf("pending")
