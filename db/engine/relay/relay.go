package relay

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"gotycoon/db/engine"
)

// Waiters are the clients of this server that wait for signals. Its methods do not wait.
type Waiters interface {
	// Waiting returns how many of them wait for a name, and Anybody whether somebody waits at all.
	Waiting(name string) int
	Anybody() bool
	// Wake wakes the one that has waited the longest, or all if broadcast. It returns how many.
	Wake(name string, broadcast bool) int
}

const (
	sendTimeout   = 2 * time.Second        // for a message; a later signal would wake who did not wait when it was sent
	shortestPause = 100 * time.Millisecond // after a connection was lost; each further one takes twice as long
	longestPause  = 10 * time.Second
	lingers       = time.Minute // a server listens so long, or twice, when nobody waits any more
)

// Relay is one server's part. Its methods do not wait for the engine, but for Close.
type Relay struct {
	signals engine.Signals
	self    uint64 // names this server in messages

	wanted chan struct{} // somebody waits
	more   chan struct{} // the queue has got something

	ctx  context.Context // ends with Close
	end  func()
	work sync.WaitGroup

	mu      sync.Mutex // held over no call of the engine, and of Waiters none but those that only look and wake
	waiters Waiters
	queue   []item
	number  uint64            // of this server's last signal
	bids    map[signal]string // names of signals that this server has answered, until it hears whose they are
	stats   Stats
}

// Stats is what a Relay has done, and whether it hears the others.
type Stats struct {
	Sent    uint64 // signals that clients of this server have sent, and the engine has taken
	Woken   uint64 // clients of this server, by signals from others
	Dropped uint64 // signals of this server that the engine has not taken, or that were too many

	Listening bool
	Deaf      error // why it does not listen, though somebody waits; nil: it does, or tries for the first time
}

// New returns the part of a server that nobody waits at so far.
func New(s engine.Signals) *Relay {
	r := &Relay{
		signals: s, self: rand.Uint64(), wanted: make(chan struct{}, 1), more: make(chan struct{}, 1), bids: map[signal]string{},
	}
	r.ctx, r.end = context.WithCancel(context.Background())
	r.work.Go(r.send)
	r.work.Go(r.listen)
	return r
}

// Close ends the part of this server.
func (r *Relay) Close() {
	r.end()
	r.work.Wait()
}

// Stats returns what has been done so far.
func (r *Relay) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Serve says whose signals these are, from now on.
func (r *Relay) Serve(w Waiters) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiters = w
}

// Listen says that somebody waits here.
func (r *Relay) Listen() {
	select {
	case r.wanted <- struct{}{}:
	default: // it is known
	}
}

// Send sends a signal to the other servers. Its name has at most LongestName bytes.
func (r *Relay) Send(name string, broadcast bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := kindOne
	if broadcast {
		kind = kindAll
		for i := range r.queue {
			if r.queue[i].kind == kindAll && r.queue[i].name == name {
				return // it wakes everybody who waits by now
			}
		}
	}
	r.askLocked(kind, name)
}

// askLocked puts a signal of this server into the queue. The caller holds mu.
func (r *Relay) askLocked(kind byte, name string) {
	r.number++
	r.enqueueLocked(item{kind: kind, signal: signal{r.self, r.number}, name: name})
}

// hear is called with each message, in the order that all servers hear.
func (r *Relay) hear(message string) {
	items, ok := decode(message)
	if !ok {
		return // it is somebody else's
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiters == nil {
		return
	}
	for _, it := range items {
		own := it.signal.server == r.self
		switch {
		case it.kind == kindTaken:
			r.assignLocked(it)
		case own: // clients of this server were woken at once
		case it.kind == kindAll:
			r.stats.Woken += uint64(r.waiters.Wake(it.name, true))
		case it.kind == kindOne && r.waiters.Waiting(it.name) > 0:
			r.bids[it.signal] = it.name
			r.enqueueLocked(item{kind: kindTaken, signal: it.signal, by: r.self})
		}
	}
}

// assignLocked heeds whose a signal is. Later answers find no bid any more. The caller holds mu.
func (r *Relay) assignLocked(it item) {
	name, bid := r.bids[it.signal]
	delete(r.bids, it.signal)
	if !bid || it.by != r.self {
		return
	}
	if r.waiters.Wake(name, false) == 0 { // the client has left in the meantime
		r.askLocked(kindOne, name)
		return
	}
	r.stats.Woken++
}
