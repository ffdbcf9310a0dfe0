package netio

import (
	"sync"
	"sync/atomic"
	"time"
)

// Loops.
//
// # The problem
//
// A goroutine for each connection sleeps and wakes for each request: it asks its socket once in
// vain, Go parks it, and Go's poller finds it again. With the log it sleeps a second time, until
// the log has the update. That is a quarter of what a small request costs, and the order in which
// goroutines run is not the order in which requests have come.
//
// # The rule
//
// A connection that waits for its next request has no goroutine. It rests in a loop, which watches
// its socket. One goroutine leads the loop: in each round it takes the connections that have news,
// and serves them one after the other on its own stack, up to the next rest. Replies that wait for
// the log leave at the end of the round, when one write of the log has made all of them safe.
//
//	lead ─► poll ─► A B C D have bytes
//	          ▲      serve A: set, owes the log │ serve B: get, reply leaves │ serve C, D: sets
//	          │      write the log once, replies of A, C, D leave
//	          └──────────────────────────────────────────────────────────────────────────────────
//
// A request may wait all the same: for a lock, a client, a disk, or another request. Then somebody
// else must lead. Code that knows that it waits calls Leave, and a new goroutine leads at once.
// Code that does not know is found by watch: if the leader has not gone on between two looks, a new
// goroutine leads. The goroutine that has lost the leadership serves its connection up to the next
// rest and ends. So each wait costs the others at most two looks, and nothing depends on the
// knowledge which requests may wait. Where many requests wait one after the other, these looks
// would add up: a loop in which that happens gives each connection a goroutine for a while. (A
// thread that the system has taken off its core looks like one that waits. There are few of these.)
//
// # How many loops
//
// One leader uses one core. Two need twice the cores for twice the requests, and where others use
// the cores, they serve fewer and later than one. The server decides (server/spread.go).
//
// # Who owns a connection
//
// A connection is parked, and belongs to nobody, or it is running, and belongs to one goroutine or
// to one of the loop's lists. Whoever changes parked to running owns it (rouse). News of a running
// connection are noted in its state (again), and its owner reads once more before it parks. Others
// that have something for the owner call it (Call). state.go has the table.
//
// A socket tells each arrival once. After a read that has found fewer bytes than it could take,
// nothing is left, and what arrives later is told: so a request costs no read in vain. The end of
// the stream may have come before such a read, and is told before it as well: then the owner reads
// until there is really nothing.
//
// # What does not rest
//
// When a client sends half a request, or does not take a reply, the goroutine that serves it has to
// wait for it. It makes the connection one of package net and keeps it for good. So do connections
// over TLS, connections that are handed to somebody else, and all of them on other systems than
// Linux.
//
// Rejected: a loop for each core that never hands over, as event-driven servers in C have it. The
// calls of this server are written as plain code that may wait, and stay so. Rejected too: several
// goroutines that share one epoll. They wake each other for single requests; with two on two cores
// a get took a quarter more than with one (BENCHMARKS.md).
type loop struct {
	all    *Loops
	poller *poller

	mu         sync.Mutex // protects the fields below
	conns      []*Conn    // that are watched, by descriptor
	ready      []*Conn    // to be served in this round; those before served have been
	served     int
	owing      []*Conn // whose replies leave at the end of the round; those before settled have left
	settled    int
	slow       []*Conn           // whose replies wait for another server, or another disk
	unsynced   []*Conn           // whose replies wait for the disk
	disk       any               // the log that they wait for
	settling   bool              // there is a settler, which sends them
	later      []*Conn           // to be served in the next round
	term       uint64            // of the leader
	busy       bool              // the leader serves a connection
	turn       uint64            // grows with each connection that is served
	seen       uint64            // turn at the latest look
	looks      uint64            // of watch
	away       map[uint64]uint64 // terms of leaders that have lost the leadership to watch and serve on, with the look
	scattering int               // so many looks more each connection has a goroutine

	syncs syncs // protected by mu as well
	vigil vigil // belongs to the leader, between two rounds
}

const (
	lookAtLoops  = time.Millisecond // between two looks at the leaders
	restAfter    = 50               // looks without news: watch rests too
	mostAway     = 3                // more leaders waiting at the same time, and the loop scatters
	awayFor      = 20               // looks for which they count
	scatterLooks = 100
	expireEvery  = time.Second // between two looks at idle connections
)

// Loops are the loops of a port. A nil *Loops has none.
type Loops struct {
	loops   []*loop
	turns   turns
	awake   atomic.Int64  // nanoseconds of vigils
	syncs   atomic.Uint64 // waits of leaders for the disk
	slept   atomic.Int64  // nanoseconds in them
	syncing atomic.Int64  // nanoseconds of Syncing.Most
	next    atomic.Uint32 // place of the next connection
	used    atomic.Uint32 // so many of loops are used
	asleep  atomic.Bool   // watch rests
	wake    chan struct{}
	ended   chan struct{}
	work    sync.WaitGroup
}

// NewLoops starts n loops, of which one is used at first. It returns nil if the system has no way
// to do it. Their goroutines are watch, and one leader for each; Close ends them.
func NewLoops(n int) *Loops {
	all := &Loops{wake: make(chan struct{}, 1), ended: make(chan struct{})}
	all.used.Store(1)
	for range n {
		p, err := newPoller()
		if err != nil {
			all.closePollers()
			return nil
		}
		all.loops = append(all.loops, &loop{all: all, poller: p, term: 1, away: map[uint64]uint64{}})
	}
	for _, l := range all.loops {
		all.work.Go(func() { l.lead(1) })
	}
	all.work.Go(all.watch)
	return all
}

// Close ends the loops. No connection rests in them any more.
func (all *Loops) Close() {
	if all == nil {
		return
	}
	close(all.ended)
	all.closePollers()
	all.work.Wait()
}

func (all *Loops) closePollers() {
	for _, l := range all.loops {
		l.poller.close()
	}
}

// Use changes how many loops are used. Connections move when they rest for the next time.
func (all *Loops) Use(n int) {
	if all != nil {
		all.used.Store(uint32(min(max(1, n), len(all.loops))))
	}
}

// Served returns how often loops have served a connection that had news.
func (all *Loops) Served() (n uint64) {
	if all == nil {
		return 0
	}
	for _, l := range all.loops {
		l.mu.Lock()
		n += l.turn
		l.mu.Unlock()
	}
	return n
}

// of returns the loop of the connection with a place.
func (all *Loops) of(place uint32) *loop { return all.loops[place%all.used.Load()] }

// lead serves connections until somebody else leads.
func (l *loop) lead(term uint64) {
	for {
		c := l.take(term)
		if c == nil {
			return
		}
		c.resume()
	}
}

// take returns the next connection to be served, nil if the term is over. It begins the next round
// when the present one is done.
func (l *loop) take(term uint64) *Conn {
	for {
		l.mu.Lock()
		if l.term != term {
			delete(l.away, term)
			l.mu.Unlock()
			return nil
		}
		if c := l.takeLocked(); c != nil {
			l.busy, c.term = true, term
			l.turn++
			l.mu.Unlock()
			return c
		}
		l.busy, l.syncs.leading = false, false
		gathers := l.gathers()
		syncs := !gathers && l.leadSync()
		slow, wait := l.slow, len(l.later) == 0 && !gathers
		alone := len(slow) == 0 && len(l.unsynced) == 0 && !l.settling && l.scattering == 0
		l.slow = nil
		if len(l.unsynced) > 0 && !l.settling && !gathers {
			l.settle()
		}
		l.mu.Unlock()
		settleEach(slow)
		if syncs {
			continue
		}
		if !l.begin(wait, alone) {
			return nil
		}
	}
}

// takeLocked returns the next connection of the round, nil if the round is done. The caller holds
// mu.
func (l *loop) takeLocked() *Conn {
	for l.served < len(l.ready) {
		c := l.ready[l.served]
		l.served++
		if l.scattering == 0 {
			return c
		}
		c.term = 0
		go c.resume()
	}
	if l.settled < len(l.owing) {
		c := l.owing[l.settled]
		l.settled++
		c.settling = true
		return c
	}
	clear(l.ready)
	clear(l.owing)
	l.ready, l.owing, l.served, l.settled = l.ready[:0], l.owing[:0], 0, 0
	return nil
}

// begin begins a round. It reports whether there is one: not after Close. alone says that no other
// goroutine works for the loop.
func (l *loop) begin(wait, alone bool) bool {
	if l.syncs.since.IsZero() {
		l.letOthers(alone)
	}
	vigil := l.mayKeepVigil
	if !alone {
		vigil = noVigil
	}
	if l.poller.poll(wait, vigil) != nil {
		return false
	}
	l.endVigil()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready, l.later = l.later, l.ready
	l.poller.each(l.news)
	if l.all.asleep.Load() && l.all.asleep.CompareAndSwap(true, false) {
		l.all.wake <- struct{}{}
	}
	return true
}

// news puts a connection on the list of those to be served. The caller holds mu.
func (l *loop) news(fd int, over bool) {
	c := l.conns[fd]
	if c == nil {
		return // it was closed after the poll
	}
	if over {
		c.over.Store(true)
	}
	if c.rouse() {
		c.drained = false
		l.ready = append(l.ready, c)
	}
}

// leave has another goroutine lead, if the leader of a term still does.
func (l *loop) leave(term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == term {
		l.handOver()
	}
}

// handOver begins the next term. The caller holds mu.
func (l *loop) handOver() {
	l.term++
	l.busy = false
	l.giveSync()
	term := l.term
	l.all.work.Go(func() { l.lead(term) })
}

// queue puts a connection, which its caller serves as the leader of a term, on a list. It returns
// false if somebody else leads.
func (l *loop) queue(c *Conn, list *[]*Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.term == 0 || l.term != c.term {
		return false
	}
	*list = append(*list, c)
	return true
}

// add begins to watch a connection.
func (l *loop) add(c *Conn) error {
	fd := c.bare.fd
	l.mu.Lock()
	defer l.mu.Unlock()
	for fd >= len(l.conns) {
		l.conns = append(l.conns, nil)
	}
	if err := l.poller.add(fd); err != nil {
		return err
	}
	l.conns[fd] = c
	return nil
}

// remove ends that.
func (l *loop) remove(fd int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[fd] = nil
	l.poller.remove(fd)
}
