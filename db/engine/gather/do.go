package gather

import (
	"context"
	"errors"
	"hash/maphash"

	"gotycoon/db/engine"
)

// Do carries out an operation and returns when the engine has made it. The error is that of the
// body, or an *engine.Error, which says whether anything has happened. When ctx ends, or
// Options.Timeout has passed, Do returns soon.
//
// body reads and changes records through the view and does nothing else that counts: it may run
// several times, and then only the last time counts. It runs in the caller's goroutine, and others
// wait for it meanwhile, so it must be quick. What it has changed counts also if it returns an
// error, which becomes that of Do. With nil the operation's Updates are made, without a change of
// goroutines.
func (g *Gather) Do(ctx context.Context, op Operation, body func(v *View) error) (Outcome, error) {
	size := op.bytes()
	p, err := g.enter(ctx, 1, size)
	if err != nil {
		return Outcome{}, err
	}
	defer g.leave(p)
	t, err := g.begin(&op, size, g.used.Load(), nil, body != nil)
	if err != nil {
		return Outcome{}, err
	}
	return g.await(ctx, t, func(_ *task, v *View) error { return body(v) })
}

// DoAll carries out operations that have nothing to do with each other but that one caller brings
// them, and returns when each has been made, or has failed. Each has one key. Those on the same key
// are made in their order. body runs for the i-th operation, one at a time; a nil body is as in Do.
// answer is called for each, in the order of ops.
//
// Operations that would take more than a quarter of the queue are made in parts, one after the
// other. If the engine has not made some of a part, those behind the part are not tried: each part
// would take Options.Timeout.
func (g *Gather) DoAll(ctx context.Context, ops []Operation, body func(i int, v *View) error, answer func(i int, o Outcome, err error)) {
	used := g.used.Load() // for all of them: those on one key go to one lane
	stuck := false
	note := func(i int, o Outcome, err error) {
		e, is := errors.AsType[*engine.Error](err)
		stuck = stuck || is && (e.Kind == engine.Undone || e.Kind == engine.Unknown)
		answer(i, o, err)
	}
	for from := 0; from < len(ops); {
		if stuck {
			answer(from, Outcome{}, errNotTried)
			from++
			continue
		}
		n, bytes := 0, 0
		for _, op := range ops[from:min(len(ops), from+max(1, g.opts.Queue/4))] {
			if bytes += op.bytes(); n > 0 && bytes > g.opts.QueueBytes/4 {
				bytes -= op.bytes()
				break
			}
			n++
		}
		g.doPart(ctx, ops, from, from+n, bytes, used, body, note)
		from += n
	}
}

// errNotTried is for operations of a DoAll behind some that were not made.
var errNotTried error = &engine.Error{Kind: engine.Undone, Err: errors.New("the engine has not made what comes before it: nothing was changed")}

// doPart is DoAll for the operations from begin to end, which bring so many bytes.
func (g *Gather) doPart(ctx context.Context, ops []Operation, begin, end, bytes int, used int32, body func(i int, v *View) error, answer func(i int, o Outcome, err error)) {
	p, err := g.enter(ctx, end-begin, bytes)
	if err != nil {
		for i := begin; i < end; i++ {
			answer(i, Outcome{}, err)
		}
		return
	}
	defer g.leave(p)
	tasks, errs := make([]*task, end-begin), make([]error, end-begin)
	turns, places := make(chan turn, len(g.lanes)), make(map[*task]int, end-begin)
	for i := begin; i < end; i++ {
		op := &ops[i]
		if len(op.Keys) != 1 || op.alone() {
			panic("gather: an operation of DoAll needs the broad lane, which has another order")
		}
		n := i - begin
		if tasks[n], errs[n] = g.begin(op, op.bytes(), used, turns, body != nil); errs[n] == nil {
			places[tasks[n]] = i
		}
	}
	for n, t := range tasks {
		if t == nil {
			answer(begin+n, Outcome{}, errs[n])
			continue
		}
		o, err := g.await(ctx, t, func(t *task, v *View) error { return body(places[t], v) })
		answer(begin+n, o, err)
	}
}

// begin gives an operation to its lane, which is one of those that are used. turns is where the
// caller is told that a body is to run, nil for the task's own place.
func (g *Gather) begin(op *Operation, size int, used int32, turns chan turn, hasBody bool) (*task, error) {
	if err := g.limits.Fits(len(op.Keys)); err != nil {
		return nil, err
	}
	t := g.task(*op, size)
	if hasBody {
		if t.turns = turns; turns == nil {
			t.turns = t.own
		}
	}
	if !hasBody {
		t.op.Blind = true
	}
	t.home = g.lane(t, used)
	t.home.put(t)
	return t, nil
}

// lane returns the lane of an operation.
func (g *Gather) lane(t *task, used int32) *lane {
	if len(t.keys) != 1 || t.op.alone() {
		return g.lanes[g.opts.Lanes]
	}
	return g.lanes[t.hash%uint64(used)]
}

// hash returns the hash of a key.
func (g *Gather) hash(k engine.Key) uint64 {
	return maphash.Bytes(g.seed, k.Key) + uint64(k.DB)*0x9E3779B97F4A7C15
}
