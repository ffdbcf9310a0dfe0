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

//	put                body has run            answered
//
// waiting ──────► waiting ───────────────► flying ───────────────► settled
//
//	▲      lost, undone      │
//	└────────────────────────┤
//	     caller has left     ▼
//
// waiting, flying ─────────────────────────► abandoned
const (
	waiting   phase = iota // nothing of it is under way; its body may run
	flying                 // its changes are under way
	settled                // its caller has the answer, or is about to
	abandoned              // its caller has left
)

// task is an operation under way. Its caller leaves it to the pool, unless it has abandoned it.
type task struct {
	op      Operation
	keys    []engine.Key // copies of the operation's
	room    []byte       // where their bytes are
	hash    uint64       // of the only key
	size    int
	arrived time.Time
	done    chan struct{} // of one
	timer   *time.Timer

	mu      sync.Mutex // held while the body runs
	phase   phase
	outcome Outcome
	err     error // of the body, or why the operation was not made

	// The lane alone uses the following.
	lost    int  // how often it has lost
	changed bool // in this group, it has changed something
}

// task returns a task for an operation.
func (g *Gather) task(op Operation, size int) *task {
	t, ok := g.tasks.Get().(*task)
	if !ok {
		t = &task{done: make(chan struct{}, 1), timer: time.NewTimer(g.opts.Timeout)}
	}
	t.op, t.size, t.arrived, t.phase, t.lost = op, size, time.Now(), waiting, 0
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

// await waits for the answer to a task.
func (g *Gather) await(ctx context.Context, t *task) (Outcome, error) {
	select {
	case <-t.done:
	case <-ctx.Done():
		if left, err := t.abandon(ctx.Err()); left {
			return Outcome{}, err
		}
	case <-t.timer.C:
		g.outage.suspect(t.arrived)
		if left, err := t.abandon(fmt.Errorf("the engine has not been ready for it within %v", g.opts.Timeout)); left {
			return Outcome{}, err
		}
	}
	t.timer.Stop()
	outcome, err := t.outcome, t.err
	t.op, t.outcome, t.err = Operation{}, Outcome{}, nil
	const keepRoom, keepKeys = 4 << 10, 64
	if cap(t.room) > keepRoom || cap(t.keys) > keepKeys {
		t.room, t.keys = nil, nil
	}
	g.tasks.Put(t)
	return outcome, err
}

// abandon leaves a task, unless its answer has come. The body does not run any more then.
func (t *task) abandon(why error) (left bool, err error) {
	t.mu.Lock()
	was := t.phase
	if was != settled {
		t.phase = abandoned
		t.op.Body = nil
	}
	t.mu.Unlock()
	switch was {
	case settled:
		<-t.done
		return false, nil
	case flying:
		return true, ErrNoAnswer
	}
	return true, &engine.Error{Kind: engine.Undone, Err: fmt.Errorf("%w: nothing was changed", why)}
}

// runs runs the body, and reports whether the caller still waits.
func (t *task) runs(v *View) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == abandoned {
		return false
	}
	t.err, t.changed, t.phase = nil, false, flying
	if t.op.Body != nil {
		v.task = t
		t.err = t.op.Body(v)
	}
	return true
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
