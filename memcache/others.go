package memcache

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
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
	are     bool // there may be others
	waiting int  // requests that wait for a message; queues.mu protects it
	idle    chan struct{}
	work    sync.WaitGroup
}

// await notes that a request waits.
func (q *queues) await() {
	q.mu.Lock()
	defer q.mu.Unlock()
	o := &q.others
	if o.waiting++; o.are && o.waiting == 1 {
		idle := make(chan struct{})
		o.idle = idle
		o.work.Go(func() { q.lookForOthers(idle) })
	}
}

// awaitNoMore notes that a request does not wait any more.
func (q *queues) awaitNoMore() {
	q.mu.Lock()
	defer q.mu.Unlock()
	o := &q.others
	if o.waiting--; o.are && o.waiting == 0 {
		close(o.idle)
	}
}

// lookForOthers wakes lines for which there are messages, until nobody waits.
func (q *queues) lookForOthers(idle <-chan struct{}) {
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
		for names := range slices.Chunk(q.waited(), lookNames) {
			prefixes := make([][]byte, len(names))
			for i, name := range names {
				prefixes[i] = []byte(name + " ")
			}
			if there, err := q.db.Claimable(prefixes); err == nil {
				q.found(names, there)
			}
		}
		pause = max(lookForOthers, lookShare*time.Since(began))
	}
}

// waited returns the names for whose messages requests wait.
func (q *queues) waited() (names []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name, l := range q.lines {
		if len(l.waiters) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// found wakes the lines of names for which there are messages.
func (q *queues) found(names []string, there []bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, name := range names {
		if l := q.lines[name]; l != nil && there[i] {
			l.news++
			l.wakeFirst()
		}
	}
}
