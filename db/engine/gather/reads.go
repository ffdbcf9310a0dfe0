package gather

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db/engine"
)

// readers make requests of the reads that wait, a few at a time. While hardly anything is under way
// a read goes at once. Otherwise it waits a moment for others: a request has a price of its own, to
// the engine and to us, and four of them with a quarter of the keys each cost twice as much.
//
// Small requests make small ones: the callers of a request of eight come back when eight others are
// under way, one after the other if they are behind a network, and the first of them would go
// alone. So where there are many callers, half of them wait for each other, for as long as a
// request takes at most. With 64 connections over HTTP that makes 20 keys a request of 8 to 11.
type readers struct {
	g    *Gather
	wake chan struct{} // one for each reader: there is something in the queue
	mean atomic.Int64  // about the bytes of a record, see most
	took atomic.Int64  // about the time of a request

	pool sync.Pool

	mu       sync.Mutex
	queue    []*query
	waits    int  // keys in the queue
	underWay int  // keys of requests
	asked    int  // reads of requests
	crowd    int  // about how many reads have waited or were under way at a time, lately
	watched  bool // a reader looks at the queue when its patience has ended
}

// A read goes at once while fewer than fewKeys are under way, unless it is one of a large crowd, or
// when manyKeys wait; in any case when it has waited for as long as requests have taken lately, or
// for mostPatience.
const (
	fewKeys      = 8
	manyKeys     = 64
	mostPatience = time.Millisecond
	largeCrowd   = 16 // of so many callers, half wait for each other
)

// query is one read. Its caller leaves it to the pool, unless it has abandoned it.
type query struct {
	keys    []engine.Key // copies, ascending, each once
	most    int          // as in engine.Reading, of a read that goes alone; 0: see fitting
	room    []byte
	arrived time.Time
	left    atomic.Bool // the caller has left
	recs    []engine.Record
	err     error
	done    chan struct{} // of one
	timer   *time.Timer
}

func (r *readers) init(g *Gather) {
	r.g, r.wake = g, make(chan struct{}, g.opts.Readers)
	for range g.opts.Readers {
		g.work.Go(r.run)
	}
}

// Read returns the records of keys, of one moment after the call, in ascending order. Absent ones
// are left out; expired ones are not. Other callers may get the same slices, so nobody may change
// them. Errors are as those of Do.
//
// Large values are left out (engine.Record.Left), so that a request has no more than
// Options.GroupBytes of values, or a little more where there are very many. Who has found room for
// them reads them with ReadLarge.
func (g *Gather) Read(ctx context.Context, keys []engine.Key) ([]engine.Record, error) {
	return g.ReadLarge(ctx, keys, 0)
}

// ReadLarge is a Read that leaves out values with more than most bytes only.
func (g *Gather) ReadLarge(ctx context.Context, keys []engine.Key, most int) ([]engine.Record, error) {
	if len(keys) == 0 { // nothing to ask the engine for
		p, err := g.enter(ctx, 1, 0)
		if err == nil {
			g.leave(p)
		}
		return nil, err
	}
	q := g.reads.query(keys, most)
	p, err := g.enter(ctx, 1, len(q.room))
	if err != nil {
		return nil, err
	}
	defer g.leave(p)
	q.timer.Reset(g.opts.Timeout)
	g.reads.put(q)
	why := error(nil)
	select {
	case <-q.done:
		q.timer.Stop()
		recs, err := q.recs, q.err
		q.recs, q.err = nil, nil
		if len(q.keys) == 1 { // larger ones are not kept
			g.reads.pool.Put(q)
		}
		return recs, err
	case <-ctx.Done():
		why = ctx.Err()
	case <-q.timer.C:
		g.outage.suspect(q.arrived)
		why = fmt.Errorf("no answer from the engine within %v", g.opts.Timeout)
	}
	q.left.Store(true)
	return nil, &engine.Error{Kind: engine.Undone, Err: why}
}

// query returns a query for keys.
func (r *readers) query(keys []engine.Key, most int) *query {
	q, ok := r.pool.Get().(*query)
	if !ok {
		q = &query{done: make(chan struct{}, 1), timer: time.NewTimer(r.g.opts.Timeout)}
	}
	q.arrived, q.most = time.Now(), most
	q.keys, q.room = copyKeys(q.keys[:0], q.room[:0], keys)
	if len(keys) > 1 {
		slices.SortFunc(q.keys, engine.Compare)
		q.keys = slices.CompactFunc(q.keys, func(a, b engine.Key) bool { return engine.Compare(a, b) == 0 })
	}
	return q
}

func (r *readers) put(q *query) {
	r.mu.Lock()
	r.queue = append(r.queue, q)
	r.waits += len(q.keys)
	now := !r.watched || r.goes()
	r.mu.Unlock()
	if now {
		r.nudge()
	}
}

// nudge wakes a reader, if one is idle.
func (r *readers) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// goes reports whether what waits goes at once; r.mu is held.
func (r *readers) goes() bool {
	return r.underWay < fewKeys && len(r.queue) >= r.enough() || r.waits >= manyKeys
}

// enough returns how many reads need not wait for others; r.mu is held.
func (r *readers) enough() int {
	if r.crowd < largeCrowd {
		return 1
	}
	return r.crowd / 2
}

// run makes requests until the Gather is closed.
func (r *readers) run() {
	timer := time.NewTimer(mostPatience)
	defer timer.Stop()
	for {
		back := r.g.outage.back()
		qs, n, keys, wait := r.take()
		switch {
		case len(qs) > 0 && back != nil:
			r.answer(qs, nil, ErrAway)
		case len(qs) > 0:
			began := time.Now()
			r.ask(qs)
			r.took.Store((7*r.took.Load() + int64(time.Since(began))) / 8)
			letIn(r.waiting)
		}
		if n > 0 { // take has counted them, also where all callers have left
			r.mu.Lock()
			r.underWay -= keys
			r.asked -= n
			r.mu.Unlock()
			continue
		}
		var late <-chan time.Time
		if wait > 0 {
			timer.Reset(wait)
			late = timer.C
		}
		select {
		case <-r.wake:
		case <-late:
		case <-r.g.ctx.Done():
			return
		}
		if wait > 0 {
			r.mu.Lock()
			r.watched = false
			r.mu.Unlock()
		}
	}
}

// waiting returns how many reads wait.
func (r *readers) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue)
}

// take takes the reads of one request out of the queue, and returns how many they were and how many
// keys they had, those included whose callers have left. When nothing goes yet, it returns how long
// this reader is to look at the queue again, 0 for not at all.
func (r *readers) take() (qs []*query, n, keys int, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return nil, 0, 0, 0
	}
	if !r.goes() {
		patience := min(time.Duration(r.took.Load()), mostPatience)
		if wait = patience - time.Since(r.queue[0].arrived); wait > 0 {
			if r.watched {
				return nil, 0, 0, 0
			}
			r.watched = true
			return nil, 0, 0, wait
		}
	}
	most := r.most()
	for ; n < len(r.queue); n++ {
		q := r.queue[n]
		if n > 0 && (keys+len(q.keys) > most || q.most > 0 || r.queue[0].most > 0) {
			break
		}
		keys += len(r.queue[n].keys)
	}
	qs = slices.Clone(r.queue[:n])
	rest := copy(r.queue, r.queue[n:])
	clear(r.queue[rest:])
	r.queue = r.queue[:rest]
	r.crowd = max(r.crowd-(r.crowd+7)/8, n+len(r.queue)+r.asked) // an eighth of those who have left is forgotten with each request
	r.waits -= keys
	r.underWay += keys
	r.asked += n
	if len(r.queue) > 0 { // this reader may be away for long, and nobody else may know of the rest
		r.nudge()
	}
	return slices.DeleteFunc(qs, func(q *query) bool { return q.left.Load() }), n, keys, 0
}

// most returns how many keys a request may have: their records, of the size of those before, have
// no more bytes than a group.
func (r *readers) most() int {
	return max(1, min(r.g.opts.Group, r.g.opts.GroupBytes/max(1, int(r.mean.Load()))))
}

// fitting returns of what size values of n keys may be that have no more than so many bytes
// together. Single ones need not be larger: it costs little to ask for their sizes first.
func fitting(bytes, n int) int {
	const least, most = 256, 1 << 20
	return max(least, min(most, bytes/max(1, n)))
}

// ask asks the engine, again and again while it fails and somebody waits.
func (r *readers) ask(qs []*query) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		keys := qs[0].keys
		if len(qs) > 1 {
			keys = nil
			for _, q := range qs {
				keys = append(keys, q.keys...)
			}
			slices.SortFunc(keys, engine.Compare)
			keys = slices.CompactFunc(keys, func(a, b engine.Key) bool { return engine.Compare(a, b) == 0 })
		}
		r.g.stats.keys.Observe(int64(len(keys)))
		how := engine.Reading{Most: qs[0].most}
		if how.Most == 0 {
			how.Most = fitting(r.g.opts.GroupBytes, len(keys))
		}
		recs, err := call(r.g, func(ctx context.Context) ([]engine.Record, error) {
			return r.g.engine.Read(ctx, keys, how)
		})
		kind := engine.KindOf(err)
		switch {
		case err == nil:
			r.weigh(recs)
			r.answer(qs, recs, nil)
			return
		case kind == engine.Refused && len(qs) > 1: // one of them is to blame
			for i := range qs {
				r.ask(qs[i : i+1])
			}
			return
		case kind == engine.Refused:
			r.answer(qs, nil, err)
			return
		}
		again := r.g.sleep(pause)
		if r.g.outage.away() {
			r.answer(qs, nil, ErrAway)
			return
		}
		qs = slices.DeleteFunc(qs, func(q *query) bool { return q.left.Load() })
		if !again || len(qs) == 0 {
			return
		}
	}
}

// weigh notes the size of records.
func (r *readers) weigh(recs []engine.Record) {
	if len(recs) == 0 {
		return
	}
	bytes := 0
	for i := range recs {
		bytes += len(recs[i].Value) + recs[i].Left
	}
	r.mean.Store((7*r.mean.Load() + int64(bytes/len(recs))) / 8)
}

// answer gives each read its records.
func (r *readers) answer(qs []*query, recs []engine.Record, err error) {
	for _, q := range qs {
		q.err = err
		if len(qs) == 1 {
			q.recs = recs
		} else {
			q.recs = pick(recs, q.keys)
		}
		q.done <- struct{}{}
	}
}

// pick returns the records of keys.
func pick(recs []engine.Record, keys []engine.Key) (found []engine.Record) {
	for _, k := range keys {
		i, ok := slices.BinarySearchFunc(recs, k, func(r engine.Record, k engine.Key) int { return engine.Compare(r.Key, k) })
		if ok && len(keys) == 1 {
			return recs[i : i+1 : i+1]
		}
		if ok {
			found = append(found, recs[i])
		}
	}
	return found
}
