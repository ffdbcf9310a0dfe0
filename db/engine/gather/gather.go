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
	Queue      int           // operations and reads that wait or are under way, see queue; 65,536
	QueueBytes int           // and what they bring; 64 MiB
	Timeout    time.Duration // of an operation, retries included; 10 s
	SID        uint16        // the server ID of updates made here
	// Persistent are the databases whose records never expire: updates have no expiration time in
	// front of their values. Nobody changes it later.
	Persistent map[uint16]bool
	// Past is called when a lane turns out to be another server's, nil for nobody: the engine was
	// taken back to before it gave the lane out. It returns soon.
	Past func()
}

func (o *Options) setDefaults() {
	if o.Past == nil {
		o.Past = func() {}
	}
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

// bytes returns about how many bytes the operation brings.
func (o *Operation) bytes() int {
	size := o.Size
	for i := range o.Keys {
		size += len(o.Keys[i].Key)
	}
	return size
}

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
	engine  engine.Engine
	opts    Options
	limits  engine.Limits
	logs    bool // the engine keeps a log
	seed    maphash.Seed
	lanes   []*lane      // the last one is the broad one
	used    atomic.Int32 // lanes that operations on one key go to, see "Lanes" in doc.go
	reads   readers
	stats   counters
	outage  outage
	failure failure
	trial   trial
	tasks   sync.Pool

	lates   sync.Map     // lanes that wait for a database, by its index (uint16)
	waiting atomic.Int32 // of these that have tasks

	queue queue

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
	g.queue.init(&g.opts)
	g.outage.g, g.trial.g = g, g
	g.used.Store(1)
	g.ctx, g.end = context.WithCancel(context.Background())
	for i := range o.Lanes + 1 {
		l := newLane(g, i == o.Lanes)
		g.lanes = append(g.lanes, l)
		g.work.Go(l.run)
	}
	g.work.Go(g.trial.watch)
	g.reads.init(g)
	return g
}

// Timeout returns for how long an operation may take.
func (g *Gather) Timeout() time.Duration { return g.opts.Timeout }

// enter begins a call that brings so many operations and bytes, unless there are too many already.
// The caller calls leave with its place.
func (g *Gather) enter(ctx context.Context, operations, bytes int) (place, error) {
	if ctx.Err() != nil {
		return place{}, &engine.Error{Kind: engine.Undone, Err: fmt.Errorf("%w: nothing was changed", ctx.Err())}
	}
	if g.outage.away() {
		g.stats.refused.Add(uint64(operations))
		return place{}, ErrAway
	}
	g.closing.RLock()
	defer g.closing.RUnlock()
	if g.closed {
		return place{}, ErrClosed
	}
	p, ok := g.queue.take(operations, bytes)
	if !ok {
		g.stats.refused.Add(uint64(operations))
		return place{}, ErrBusy
	}
	g.calls.Add(1)
	return p, nil
}

// leave ends a call.
func (g *Gather) leave(p place) {
	g.queue.leave(p)
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
	switch {
	case heard(ctx, err):
		g.outage.answered()
	case g.ctx.Err() == nil:
		g.failure.note(err)
	}
	return answer, err
}

// heard reports whether a call with such an end has had an answer of the engine.
func heard(ctx context.Context, err error) bool {
	return err == nil || engine.KindOf(err) != engine.Unknown && !engine.IsAway(err) && ctx.Err() == nil
}
