package gather

import (
	"slices"
	"sync"
	"time"

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

	sweepAt int // length of the queue at which abandoned tasks are taken out

	// See trial.
	since time.Time // when it began to try the present group; zero: it tries none
	stuck bool      // the engine answers probes meanwhile

	// The lane's goroutine alone uses the following.
	id       engine.GroupID // of the last group
	front    []*task        // losers, then what was taken out of the queue
	group    []*task        // under way
	hold     bool           // its keys are held
	limit    int            // of operations of a group, see "Whole groups" in doc.go
	fails    int            // calls that have failed since one has succeeded
	small    int            // groups, one after the other, that need fewer lanes
	crowd    int            // operations that were in the last group, or waited when it was answered
	took     time.Duration  // by the last group
	answered time.Time      // when it was
	callers  callers
	view     View
	keys     []engine.Key
	epoch    uint64 // of the engine, before the group's keys were read; 0: none was
	known    known
}

func newLane(g *Gather, broad bool) *lane {
	return &lane{
		g: g, broad: broad, wake: make(chan struct{}, 1), limit: g.opts.Group, view: View{g: g, whole: broad},
		known: known{credit: firstCredit},
	}
}

// put gives the lane a task.
func (l *lane) put(t *task) {
	l.mu.Lock()
	l.enqueue(t)
	first := len(l.queue) == 1
	l.mu.Unlock()
	if first {
		l.nudge()
	}
}

// leastSwept is how long a queue is that is worth a look for tasks that were abandoned.
const leastSwept = 1 << 10

// enqueue appends a task to the queue. While the lane waits for the engine, callers give up, have
// left their places to others, and those give up too: so when the queue has doubled, those of them
// are taken out. The caller has l.mu.
func (l *lane) enqueue(t *task) {
	if l.queue = append(l.queue, t); len(l.queue) >= max(leastSwept, l.sweepAt) {
		l.queue = slices.DeleteFunc(l.queue, (*task).left)
		l.sweepAt = 2 * len(l.queue)
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
		l.linger()
		if l.follow(); len(l.front) == 0 {
			continue
		}
		l.choose()
		l.adapt()
		began, size := time.Now(), len(l.group)
		if l.carryOut() && l.late {
			l.rest()
		}
		l.answered = time.Now()
		l.took = l.answered.Sub(began)
		l.callers.letIn(size, l.waiting)
	}
}

// waiting returns how many tasks wait.
func (l *lane) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

// linger lets callers in who are behind a network, where groups take long, when the first of them
// is back: who misses the group waits for a whole other one, so it is worth an eighth of that time.
// Otherwise groups of one and of all the others take turns. A caller alone goes at once. Where
// groups are quick, two halves that take turns are no loss: the server works for the one while the
// engine works for the other.
func (l *lane) linger() {
	const (
		least = time.Millisecond / 5  // less than that is no time for a timer
		most  = 10 * time.Millisecond // a group that has met an outage says nothing about the next one
	)
	wait := min(l.took/8, most)
	full := len(l.front) >= l.g.opts.Group
	if l.late || wait < least || full || len(l.front)+l.waiting() >= l.crowd {
		return
	}
	if wait -= time.Since(l.answered); wait > 0 {
		l.g.sleep(wait)
		l.fetch()
	}
}

// A lane more is used when a group is as large as manyOperations: smaller ones would cost the
// engine more for each operation, and not save time. It is given up after fewGroups that would all
// be a quarter smaller than that if one lane made them: with half, 64 callers kept for ever what a
// burst had got them, and took a third to a half more of the engine's processor. A value counts as
// another operation for each sizeOfOne bytes.
const (
	manyOperations = 128
	fewGroups      = 100
	sizeOfOne      = 8 << 10
)

// adapt decides by the size of the next group how many lanes are used from now on.
func (l *lane) adapt() {
	if l.broad {
		return
	}
	n, used := len(l.group), int(l.g.used.Load())
	for _, t := range l.group {
		n += t.size / sizeOfOne
	}
	if n*used >= manyOperations*3/4 {
		l.small = 0
	} else {
		l.small++
	}
	switch {
	case n >= manyOperations && used < l.g.opts.Lanes:
		l.g.used.CompareAndSwap(int32(used), int32(used+1))
	case l.small >= fewGroups && used > 1:
		l.small = 0
		l.g.used.CompareAndSwap(int32(used), int32(used-1))
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
		l.g.trial.givesUp(l)
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
