package gather

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

// Options of a Gather. Zero values take the defaults.
type Options struct {
	Lanes      int           // for operations on one key, at most; 2. There is one more, for all others
	Readers    int           // requests of reads that are under way at a time; 4
	Group      int           // operations of a group, keys of a request of reads; 512
	GroupBytes int           // about the bytes of either; 4 MiB
	Queue      int           // operations and reads that wait or are under way; 65,536
	QueueBytes int           // and what they bring; 64 MiB
	Timeout    time.Duration // of an operation, retries included; 10 s
	SID        uint16        // the server ID of updates made here
	// Persistent are the databases whose records never expire: updates have no expiration time in
	// front of their values. Nobody changes it later.
	Persistent map[uint16]bool
}

func (o *Options) setDefaults() {
	for _, d := range []struct {
		option *int
		value  int
	}{
		{&o.Lanes, 2}, {&o.Readers, 4}, {&o.Group, 512}, {&o.GroupBytes, 4 << 20}, {&o.Queue, 65536}, {&o.QueueBytes, 64 << 20},
	} {
		if *d.option == 0 {
			*d.option = d.value
		}
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
}

// Operation is a step of one caller.
type Operation struct {
	// Keys are those that the body reads or changes. Their bytes are not needed after Do.
	Keys []engine.Key
	// Updates are made by an operation without a body. They must not change during Do.
	Updates []ulog.Update
	// Blind says that the body reads nothing.
	Blind bool
	// Size is about how many bytes are stored.
	Size int

	// As in engine.Group. What they point to must not change any more. With a Clear the body is
	// blind. An error of the body keeps them from being made.
	Clear    *engine.Clear
	Position *ulog.Position
	Guard    *engine.Term
}

// alone reports whether the operation cannot share a group.
func (o *Operation) alone() bool { return o.Clear != nil || o.Position != nil || o.Guard != nil }

// Outcome is what has become of an operation.
type Outcome struct {
	// Revision is that of the records which the operation has stored; engine.Replaced where one of
	// them was changed again at once, and 0 where it has stored none.
	Revision uint64
	// Stamp is one up to which the engine's log has the operation's updates; 0: nothing was logged.
	Stamp engine.Stamp
}

// Errors of operations that were not made. They are of the kind engine.Undone.
var (
	ErrBusy   error = &engine.Error{Kind: engine.Undone, Err: errors.New("too many operations wait for the engine, try again later")}
	ErrAway   error = &engine.Error{Kind: engine.Undone, Away: true, Err: errors.New("the engine cannot be reached, nothing was changed")}
	ErrClosed error = &engine.Error{Kind: engine.Undone, Err: errors.New("the server is stopping, nothing was changed")}
)

// ErrNoAnswer is the error of an operation whose outcome nobody knows. It is of the kind
// engine.Unknown.
var ErrNoAnswer error = &engine.Error{Kind: engine.Unknown, Err: errors.New("no answer from the engine: the update may have been made")}

// Gather carries out operations on an engine. Any number of goroutines may use it.
type Gather struct {
	engine engine.Engine
	opts   Options
	limits engine.Limits
	logs   bool // the engine keeps a log
	seed   maphash.Seed
	lanes  []*lane      // the last one is the broad one
	used   atomic.Int32 // lanes that operations on one key go to, see "Lanes" in doc.go
	reads  readers
	stats  counters
	outage outage
	tasks  sync.Pool

	lates   sync.Map     // lanes that wait for a database, by its index (uint16)
	waiting atomic.Int32 // of these that have tasks

	queued, queuedBytes atomic.Int64

	closing sync.RWMutex // held for reading while a call enters
	closed  bool
	calls   sync.WaitGroup // Do and Read
	ctx     context.Context
	end     func()
	work    sync.WaitGroup // goroutines
}

// New returns a Gather. The caller closes it, and the engine after it.
func New(e engine.Engine, o Options) *Gather {
	o.setDefaults()
	g := &Gather{engine: e, opts: o, limits: e.Limits(), logs: e.Log() != nil, seed: maphash.MakeSeed()}
	g.stats.init()
	g.outage.g = g
	g.used.Store(1)
	g.ctx, g.end = context.WithCancel(context.Background())
	for i := range o.Lanes + 1 {
		l := newLane(g, i == o.Lanes)
		g.lanes = append(g.lanes, l)
		g.work.Go(l.run)
	}
	g.reads.init(g)
	return g
}

// Timeout returns for how long an operation may take.
func (g *Gather) Timeout() time.Duration { return g.opts.Timeout }

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
	t, err := g.begin(ctx, &op, g.used.Load(), nil, body != nil)
	if err != nil {
		return Outcome{}, err
	}
	defer g.leave(t.size)
	return g.await(ctx, t, func(_ *task, v *View) error { return body(v) })
}

// DoAll carries out operations that have nothing to do with each other but that one caller brings
// them, and returns when each has been made, or has failed. Each has one key. Those on the same key
// are made in their order. body runs for the i-th operation, one at a time; a nil body is as in Do.
// answer is called for each, in the order of ops.
func (g *Gather) DoAll(ctx context.Context, ops []Operation, body func(i int, v *View) error, answer func(i int, o Outcome, err error)) {
	tasks, errs := make([]*task, len(ops)), make([]error, len(ops))
	turns, places := make(chan turn, len(g.lanes)), make(map[*task]int, len(ops))
	used := g.used.Load() // for all of them: those on one key go to one lane
	for i := range ops {
		if len(ops[i].Keys) != 1 || ops[i].alone() {
			panic("gather: an operation of DoAll needs the broad lane, which has another order")
		}
		if tasks[i], errs[i] = g.begin(ctx, &ops[i], used, turns, body != nil); errs[i] == nil {
			places[tasks[i]] = i
		}
	}
	for i, t := range tasks {
		if t == nil {
			answer(i, Outcome{}, errs[i])
			continue
		}
		size := t.size
		o, err := g.await(ctx, t, func(t *task, v *View) error { return body(places[t], v) })
		g.leave(size)
		answer(i, o, err)
	}
}

// begin gives an operation to its lane, which is one of those that are used. The caller calls leave
// with the size of the task. turns is where the caller is told that a body is to run, nil for the
// task's own place.
func (g *Gather) begin(ctx context.Context, op *Operation, used int32, turns chan turn, hasBody bool) (*task, error) {
	if err := g.limits.Fits(len(op.Keys)); err != nil {
		return nil, err
	}
	size := op.Size
	for i := range op.Keys {
		size += len(op.Keys[i].Key)
	}
	if err := g.enter(ctx, size); err != nil {
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

// enter begins a call that brings size bytes, unless there are too many already.
func (g *Gather) enter(ctx context.Context, size int) error {
	if ctx.Err() != nil {
		return &engine.Error{Kind: engine.Undone, Err: fmt.Errorf("%w: nothing was changed", ctx.Err())}
	}
	if g.outage.away() {
		g.stats.refused.Add(1)
		return ErrAway
	}
	g.closing.RLock()
	defer g.closing.RUnlock()
	if g.closed {
		return ErrClosed
	}
	n, bytes := g.queued.Add(1), g.queuedBytes.Add(int64(size))
	if n > int64(g.opts.Queue) || n > 1 && bytes > int64(g.opts.QueueBytes) {
		g.queued.Add(-1)
		g.queuedBytes.Add(-int64(size))
		g.stats.refused.Add(1)
		return ErrBusy
	}
	g.calls.Add(1)
	return nil
}

// leave ends a call.
func (g *Gather) leave(size int) {
	g.queued.Add(-1)
	g.queuedBytes.Add(-int64(size))
	g.calls.Done()
}

// Close refuses new operations, and waits until those under way have been answered, which takes as
// long as Options.Timeout at most, and until all goroutines have ended.
func (g *Gather) Close() error {
	g.closing.Lock()
	g.closed = true
	g.closing.Unlock()
	g.calls.Wait()
	g.end()
	g.work.Wait()
	return nil
}

// call makes a call of the engine, for as long as an operation may take.
func call[T any](g *Gather, f func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(g.ctx, g.opts.Timeout)
	defer cancel()
	answer, err := f(ctx)
	if heard(ctx, err) {
		g.outage.answered()
	}
	return answer, err
}

// heard reports whether a call with such an end has had an answer of the engine.
func heard(ctx context.Context, err error) bool {
	return err == nil || engine.KindOf(err) != engine.Unknown && !engine.IsAway(err) && ctx.Err() == nil
}
