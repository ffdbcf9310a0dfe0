package gather

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"gotycoon/db/engine"
)

// manyLosses is after how many losses the keys of an operation are held.
const manyLosses = 3

// lane writes one group after the other.
type lane struct {
	g     *Gather
	broad bool
	late  bool          // it waits for a database, see late.go
	wake  chan struct{} // of one: there is something in the queue

	mu    sync.Mutex
	queue []*task
	back  []*task // from the lane that has waited for their database
	busy  bool    // of a late lane: it has tasks

	silent atomic.Int64 // since when it has had no answer, in nanoseconds; 0: it waits for none

	// The lane's goroutine alone uses the following.
	id    engine.GroupID // of the last group
	front []*task        // losers, then what was taken out of the queue
	group []*task        // under way
	hold  bool           // its keys are held
	limit int            // of operations of a group, see "Whole groups" in doc.go
	fails int            // calls that have failed since one has succeeded
	view  View
	keys  []engine.Key
}

func newLane(g *Gather, broad bool) *lane {
	return &lane{g: g, broad: broad, wake: make(chan struct{}, 1), limit: g.opts.Group, view: View{g: g, whole: broad}}
}

// put gives the lane a task.
func (l *lane) put(t *task) {
	l.mu.Lock()
	l.queue = append(l.queue, t)
	first := len(l.queue) == 1
	l.mu.Unlock()
	if first {
		l.nudge()
	}
}

// nudge makes the lane look at its queue, and whether the engine is away.
func (l *lane) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run writes groups until the Gather is closed.
func (l *lane) run() {
	for l.wait() {
		if l.follow(); len(l.front) == 0 {
			continue
		}
		l.choose()
		if l.carryOut() && l.late {
			l.rest()
		}
		// Callers who have just been answered come again with their next operations: let them go
		// first, or the next group has one operation, and all others wait for it.
		runtime.Gosched()
	}
}

// wait waits until there is a task, and the engine is not away. It returns false at the end.
func (l *lane) wait() bool {
	for {
		back := l.g.outage.back()
		if back != nil {
			l.refuseAll()
			l.rest()
		} else if l.fetch(); len(l.front) > 0 {
			return true
		}
		l.silent.Store(0)
		select {
		case <-l.wake:
		case <-back:
		case <-l.g.ctx.Done():
			return false
		}
	}
}

// fetch takes tasks out of the queue, as many as a group can have.
func (l *lane) fetch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeBack()
	n := min(len(l.queue), l.g.opts.Group-len(l.front))
	if n <= 0 {
		return
	}
	l.front = append(l.front, l.queue[:n]...)
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
}

// refuseAll refuses what waits: the engine is away.
func (l *lane) refuseAll() {
	l.mu.Lock()
	tasks := slices.Concat(l.back, l.front, l.queue)
	l.back, l.front, l.queue = nil, nil, nil
	l.mu.Unlock()
	for _, t := range tasks {
		t.answer(Outcome{}, ErrAway)
	}
}

// choose takes the tasks of the next group from the front. Who has lost too often goes without the
// others. A group that waits for its database holds its keys too: it could lose while it waits.
func (l *lane) choose() {
	l.hold = (l.late && l.front[0].op.Clear == nil || l.front[0].lost >= manyLosses) && l.g.limits.Hold > 0
	n, keys, bytes := 0, 0, 0
	for _, t := range l.front {
		keys += len(t.keys)
		bytes += t.size
		if n > 0 && (n >= l.limit || keys > l.g.limits.Changes || bytes > min(l.g.opts.GroupBytes, l.g.limits.Bytes) ||
			t.op.alone() || l.front[0].op.alone() || l.hold && !l.late && t.lost < manyLosses) {
			break
		}
		n++
	}
	l.group = append(l.group[:0], l.front[:n]...)
	rest := copy(l.front, l.front[n:])
	clear(l.front[rest:])
	l.front = l.front[:rest]
}
