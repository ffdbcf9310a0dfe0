package memcache

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"gotycoon/db"
)

const (
	// how often somebody looks for messages of other servers, while requests wait
	lookForOthers = 100 * time.Millisecond
	// looks take at most this part of the time, however many lines there are
	lookShare = 10
	lookNames = 1000 // names of one look
)

// others is what servers need that serve the queues of one database: an engine tells nobody of a
// message, so while requests of this server wait, one goroutine looks for messages in all of their
// lines. Those that this server stores itself wake a line at once, as ever.
type others struct {
	db     *db.DB
	are    bool // there may be others
	waited func() (names []string)
	found  func(name string) // there is a message
	work   sync.WaitGroup

	mu      sync.Mutex // protects the fields below
	waiting int        // requests that wait for a message
	idle    chan struct{}
}

// await notes that a request waits.
func (o *others) await() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting++; o.are && o.waiting == 1 {
		idle := make(chan struct{})
		o.idle = idle
		o.work.Go(func() { o.look(idle) })
	}
}

// awaitNoMore notes that a request does not wait any more.
func (o *others) awaitNoMore() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting--; o.are && o.waiting == 0 {
		close(o.idle)
	}
}

// look looks for messages until nobody waits.
func (o *others) look(idle <-chan struct{}) {
	pause := lookForOthers
	for {
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-idle:
			timer.Stop()
			return
		case <-timer.C:
		}
		began := time.Now()
		if pause = lookForOthers; o.lookOnce() { // else it has taken the time of an engine that is away
			pause = max(pause, lookShare*time.Since(began))
		}
	}
}

// lookOnce looks for messages, and reports whether the engine has answered.
func (o *others) lookOnce() bool {
	for names := range slices.Chunk(o.waited(), lookNames) {
		prefixes := make([][]byte, len(names))
		for i, name := range names {
			prefixes[i] = []byte(name + " ")
		}
		there, err := o.db.Claimable(prefixes)
		if err != nil {
			return false
		}
		for i, name := range names {
			if there[i] {
				o.found(name)
			}
		}
	}
	return true
}
