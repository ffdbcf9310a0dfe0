package gather

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gotycoon/db/engine"
)

// phase is how far a task is.
type phase byte

//	         its turn          body has run           answered
//	waiting ──────────► called ─────────────► flying ──────────► settled
//	   ▲                               │
//	   └───────────────────────────────┘
//	             lost, undone
//
// From each of them but settled a task becomes abandoned when its caller leaves.
const (
	waiting   phase = iota // nothing of it is under way
	called                 // the lane waits until the caller has run the body
	flying                 // its changes are under way
	settled                // its caller has the answer, or is about to
	abandoned              // its caller has left
)

// turn is a lane's request to a caller: run the body of this task now.
type turn struct {
	task *task
	view *View
}

// task is an operation under way. Its caller leaves it to the pool, unless it has abandoned it.
type task struct {
	op      Operation
	keys    []engine.Key // copies of the operation's
	room    []byte       // where their bytes are
	hash    uint64       // of the only key
	size    int
	arrived time.Time
	home    *lane         // where it waits for its turn, see late.go
	done    chan struct{} // of one
	timer   *time.Timer

	own   chan turn     // of one
	turns chan turn     // own, or that of a caller with many tasks; nil: there is no body
	ran   chan struct{} // of one: the body has run, or the caller has left

	mu      sync.Mutex
	phase   phase
	outcome Outcome
	err     error // of the body, or why the operation was not made
	locked  bool  // it waits for a transaction that has its database alone

	// The lane alone uses the following.
	lost    int  // how often it has lost
	changed bool // in this group, it has changed something
}

// task returns a task for an operation.
func (g *Gather) task(op Operation, size int) *task {
	t, ok := g.tasks.Get().(*task)
	if !ok {
		t = &task{
			done: make(chan struct{}, 1), timer: time.NewTimer(g.opts.Timeout),
			own: make(chan turn, 1), ran: make(chan struct{}, 1),
		}
	}
	t.op, t.size, t.arrived, t.phase, t.lost, t.locked = op, size, time.Now(), waiting, 0, false
	t.keys, t.room = copyKeys(t.keys[:0], t.room[:0], op.Keys)
	if len(t.keys) == 1 {
		t.hash = g.hash(t.keys[0])
	}
	t.timer.Reset(g.opts.Timeout)
	return t
}

// copyKeys appends keys to dst, and their bytes to room.
func copyKeys(dst []engine.Key, room []byte, keys []engine.Key) ([]engine.Key, []byte) {
	need := 0
	for i := range keys {
		need += len(keys[i].Key)
	}
	if need > cap(room)-len(room) {
		room = make([]byte, 0, need)
	}
	for _, k := range keys {
		at := len(room)
		room = append(room, k.Key...)
		dst = append(dst, engine.Key{DB: k.DB, Key: room[at:len(room):len(room)]})
	}
	return dst, room
}

// await waits for the answer to a task. Meanwhile it runs the bodies whose turn it is: that of the
// task, and those of other tasks of the same caller.
func (g *Gather) await(ctx context.Context, t *task, body func(t *task, v *View) error) (Outcome, error) {
	for answered := false; !answered; {
		select {
		case next := <-t.turns:
			next.task.run(next.view, body)
			continue
		case <-t.done:
		case <-ctx.Done():
			if left, err := t.abandon(ctx.Err(), body); left {
				return Outcome{}, err
			}
		case <-t.timer.C:
			g.outage.suspect(t.arrived)
			if left, err := t.abandon(t.late(g.opts.Timeout), body); left {
				return Outcome{}, err
			}
		}
		answered = true
	}
	t.timer.Stop()
	outcome, err := t.outcome, t.err
	t.op, t.outcome, t.err, t.turns = Operation{}, Outcome{}, nil, nil
	const keepRoom, keepKeys = 4 << 10, 64
	if cap(t.room) > keepRoom || cap(t.keys) > keepKeys {
		t.room, t.keys = nil, nil
	}
	g.tasks.Put(t)
	return outcome, err
}

// held is why an operation was not made that has waited for a transaction.
func held(limit time.Duration) error {
	return fmt.Errorf("a transaction has had the database to itself for %v", limit)
}

// Held returns the error of an operation that has waited for a transaction of this server for
// Options.Timeout, before it came to Do. It is that of an operation that has waited in Do.
func (g *Gather) Held() error { return nothing(held(g.opts.Timeout)) }

// nothing is the error of an operation that has changed nothing.
func nothing(why error) error {
	return &engine.Error{Kind: engine.Undone, Err: fmt.Errorf("%w: nothing was changed", why)}
}

// late returns why a task has waited for too long.
func (t *task) late(limit time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.locked {
		return held(limit)
	}
	return fmt.Errorf("the engine has not been ready for it within %v", limit)
}

// run runs the body of a task whose turn it is. When the body panics, the lane goes on without the
// task.
func (t *task) run(v *View, body func(t *task, v *View) error) {
	next := abandoned
	var err error
	defer func() {
		t.mu.Lock()
		t.phase, t.err = next, err
		t.mu.Unlock()
		t.ran <- struct{}{}
	}()
	err = body(t, v)
	next = flying
}

// abandon leaves a task, unless its answer has come. The body does not run any more then.
func (t *task) abandon(why error, body func(t *task, v *View) error) (left bool, err error) {
	t.mu.Lock()
	was := t.phase
	if was != settled {
		t.phase = abandoned
	}
	if was == waiting {
		t.op.Updates = nil // the lane may not find out for long that nobody wants them
	}
	t.mu.Unlock()
	switch was {
	case settled:
		<-t.done
		return false, nil
	case flying:
		return true, ErrNoAnswer
	case called: // the turn is here, or about to be; those of other tasks may be before it
		next := <-t.turns
		for ; next.task != t; next = <-t.turns {
			next.task.run(next.view, body)
		}
		t.ran <- struct{}{}
	}
	return true, nothing(why)
}

// runs has the body run, or makes the operation's updates where it has none, and reports whether
// the caller still waits.
func (t *task) runs(v *View) bool {
	if !t.begin(v) {
		return false
	}
	if t.turns == nil {
		return true
	}
	t.turns <- turn{t, v}
	<-t.ran
	return !t.left()
}

// begin makes the updates of an operation without a body; for one that has a body it only says that
// the body may run.
func (t *task) begin(v *View) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == abandoned {
		return false
	}
	v.task, t.err, t.changed, t.phase = t, nil, false, called
	if t.turns != nil {
		return true
	}
	for i := range t.op.Updates {
		v.Apply(&t.op.Updates[i])
	}
	t.phase = flying
	return true
}

// failed reports whether the body has returned an error.
func (t *task) failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err != nil
}

// again makes a task one that waits.
func (t *task) again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == flying {
		t.phase = waiting
	}
}

// answer ends a task. A nil err leaves the body's.
func (t *task) answer(o Outcome, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == abandoned {
		return
	}
	t.phase, t.outcome = settled, o
	if err != nil {
		t.err = err
	}
	t.done <- struct{}{}
}

// left reports whether the caller has left.
func (t *task) left() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == abandoned
}
