package cluster

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/cluster/election"
	"gotycoon/internal/rescue"
	"gotycoon/internal/vfs"
)

// Role is what a member is doing.
type Role string

// The roles.
const (
	Waiting   Role = "waiting"   // no primary is known, or this member's data leave the history
	Following Role = "following" // the primary of the term
	Opening   Role = "opening"   // appointed; the first update of the term is not on followers yet
	Leading   Role = "leading"   // the primary
	Draining  Role = "draining"  // the primary, about to hand over to another member
	Witness   Role = "witness"   // votes, and has no data
)

const (
	// lookEvery is the pause between two looks at the state, besides those that changes cause.
	lookEvery = 200 * time.Millisecond
	// haltTimeout limits the end of a replication: it waits for the update being stored.
	haltTimeout = 5 * time.Second

	// LeastDiskTimeout is far above what an fsync takes on a disk that is busy with a checkpoint or
	// a snapshot.
	LeastDiskTimeout = 10 * time.Second
)

// Options of a Node.
type Options struct {
	Name    string // of this member
	Witness bool   // it has no data
	Dir     string // where the newest seal is kept
	FS      vfs.FS // of Dir; nil: the system's

	// Required is how many followers must have an update before it is acknowledged. At most as many
	// as there are other members with data.
	Required int

	Data   Data // nil for a witness
	Logger *slog.Logger

	// Asides returns the directories of what was put aside and is still there. It may be nil.
	Asides func() []string

	// Dial opens a connection to another member, on which that member calls Accept of its node.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Elector makes the elector, which sends by the transport. Its Receive gets what comes.
	Elector func(t election.Transport) (e election.Elector, receive func(from string, msg []byte), err error)

	// DiskTimeout is how long the disk of the update log may do nothing, while updates wait for it,
	// before a primary hands over to another member; 0: LeastDiskTimeout.
	DiskTimeout time.Duration

	// Changed is called after changes of the role, with nothing locked: once for several changes
	// that follow each other quickly. It may be nil.
	Changed func()
}

// Node is one member of a cluster. See the package comment for its duties.
type Node struct {
	opts    Options
	elector election.Elector
	mesh    *mesh
	seals   termFile
	begins  termFile
	told    string // the latest trouble in the log

	// What the member that leads the votes says; guarded by mu.
	heard    string // its trouble
	doubt    string // why it is not the primary; empty: it is
	doubtful int    // looks in a row with a doubt

	failing sync.Once
	failed  chan struct{}
	failure error // set before failed is closed

	failures int // tries in vain to begin a term

	tally       tally
	disk, begin meter        // of the update log, and of the holders of work; used by watch
	stalled     atomic.Int64 // for how long the disk has done nothing, in nanoseconds
	giving      atomic.Bool  // handOff runs

	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup
	wake chan struct{}
	news chan struct{} // the role has changed

	view  atomic.Pointer[View]
	acts  atomic.Uint64 // term in which this member is the primary, or is about to be; 0: none
	led   atomic.Uint64 // term in which clients may be answered as by the primary; 0: none
	epoch atomic.Uint64 // grows when this member ceases to be the primary, before led becomes 0

	work   chan struct{} // holds a token while something uses Data that may wait for the disk
	worked atomic.Uint64 // how often work was taken and given back: odd while it is taken

	// mu is held over each change of the role. Nobody waits for the disk or the network while
	// holding it. begun and sealed are changed by whoever has both work and mu.
	mu       sync.Mutex
	begun    uint64 // newest term that this member has begun as the primary
	sealed   uint64 // nothing of an earlier term is stored, confirmed or begun any more
	role     Role
	term     uint64 // led or followed
	since    time.Time
	trouble  string          // why the role is Waiting or Opening
	leaving  bool            // the server stops
	handing  bool            // the leadership is on its way to another member
	unready  bool            // the services could not take over when that was tried last
	stricter func(Rule) Rule // while an order is carried out that needs another rule than the State's
	// unsettled: whether the latest change of the rule was committed shows only when another leads.
	unsettled bool
	tenure    context.Context // ends when this member steps down
	cease     context.CancelFunc
	aside     Aside

	ordering chan struct{} // holds a token while an order is carried out
}

// Aside says what was put aside when this member's data left the history.
type Aside struct {
	Updates int    `json:"updates,omitempty"`
	Dir     string `json:"dir,omitempty"`
	Term    uint64 `json:"term,omitempty"` // whose history does not have them
}

// Open reads the newest seal and starts the elector. Start begins.
func Open(o Options) (*Node, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.DiskTimeout == 0 {
		o.DiskTimeout = LeastDiskTimeout
	}
	n := &Node{opts: o, seals: termFile{o.FS, o.Dir, "seal"}, begins: termFile{o.FS, o.Dir, "begun"}, wake: make(chan struct{}, 1), news: make(chan struct{}, 1), ordering: make(chan struct{}, 1), work: make(chan struct{}, 1), failed: make(chan struct{}), role: Waiting, since: time.Now(), trouble: "the member has just started"}
	if o.Witness {
		n.role, n.trouble = Witness, ""
	}
	var err error
	if n.sealed, err = n.seals.read(); err != nil {
		return nil, err
	}
	if n.begun, err = n.begins.read(); err != nil {
		return nil, err
	}
	n.view.Store(&View{Role: n.role})
	n.tally.changed = n.since
	n.mesh = newMesh(o.Dial, o.Logger)
	n.mesh.handle = n.handle
	// Messages may come before the elector is made.
	elector, receive, err := o.Elector(n.mesh)
	if err != nil {
		n.mesh.close()
		return nil, err
	}
	n.elector, n.mesh.take = elector, receive
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n, nil
}

// Start begins to take part. From now on Accept may be called.
func (n *Node) Start() {
	n.done.Go(func() { _ = rescue.Do(n.opts.Logger, "the membership in the cluster", n.run) })
	n.done.Go(func() { _ = rescue.Do(n.opts.Logger, "a change of the role", n.announce) })
	n.done.Go(func() { _ = rescue.Do(n.opts.Logger, "looking at the members", n.survey) })
	if !n.opts.Witness {
		n.done.Go(func() { _ = rescue.Do(n.opts.Logger, "watching the lead and the disk", n.watch) })
	}
}

// Accept takes a connection of another member, whose name has been proved. It does not wait.
func (n *Node) Accept(from string, conn net.Conn) { n.mesh.accept(from, conn) }

// Close leaves the cluster without a word. First of all it ends what this member does as the
// primary or the leader, so that the others elect another one, also where Close then waits for a
// disk that hangs.
func (n *Node) Close() error {
	n.stop()
	n.mu.Lock()
	n.stepDown(errStops)
	n.mu.Unlock()
	err := n.elector.Close()
	n.done.Wait()
	n.mesh.close()
	return err
}

var errStops = errors.New("this server stops")

// announce tells of changes of the role.
func (n *Node) announce() {
	for {
		select {
		case <-n.news:
			if n.opts.Changed != nil {
				n.opts.Changed()
			}
		case <-n.ctx.Done():
			return
		}
	}
}

// run looks at the state of the cluster after each change, and now and then.
func (n *Node) run() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for n.ctx.Err() == nil {
		changed := n.elector.Changed()
		n.look()
		select {
		case <-changed:
		case <-tick.C:
		case <-n.wake:
		case <-n.ctx.Done():
		}
	}
}

// survey looks at the other members now and then.
func (n *Node) survey() {
	tick := time.NewTicker(learnEvery)
	defer tick.Stop()
	for n.ctx.Err() == nil {
		n.learn()
		n.listen()
		select {
		case <-tick.C:
		case <-n.ctx.Done():
		}
	}
}

// look does what the state of the cluster asks for.
func (n *Node) look() {
	// In this order: whoever leads knows the newest State, and did not before.
	term, leads := n.elector.Leading()
	st := n.elector.State()
	n.tally.appointed(st.Term)
	n.mesh.keep(st.Members)
	if n.opts.Witness {
		return
	}
	n.mu.Lock()
	n.heed(term, leads)
	active, draining, handing := n.active(), n.role == Draining, n.handing
	n.mu.Unlock()
	_, belongs := st.Member(n.opts.Name)
	switch err := n.elector.Err(); {
	case n.ctx.Err() != nil: // the elector is closed, or is about to be
	case err != nil:
		n.trying(n.leave(err))
		n.fail(err)
	case st.Term > 0 && !belongs:
		n.trying(n.leave(election.ErrRemoved))
	case active && !draining:
		n.lead()
	case active || handing:
	case leads:
		n.trying(n.takeOver(term, st))
	case st.Term > 0 && st.Primary != n.opts.Name:
		n.trying(n.follow(st))
	case st.Primary == n.opts.Name:
		n.trying(errors.New("this member was the primary before it was cut off or started anew, and waits for the vote"))
	default:
		n.trying(errors.New("no primary has been appointed yet: a majority of the members has to be there, and at the very first start all members"))
	}
}

// poke has run look again at once.
func (n *Node) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}
