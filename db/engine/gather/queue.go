package gather

import "sync/atomic"

// queue bounds what calls bring that wait or are under way, in operations and in bytes. The
// operations of a DoAll, or of a part of it, are one call; the keys of a Read are one operation.
//
// Whoever brings much must not keep out whoever brings little. So there are three kinds of calls:
//
//   - A small one has at most a 256th of the room: 256 KiB and 256 operations by default.
//   - A large one has more. Small and large calls share the room, and large ones get no more than
//     that. Where they have taken it, small ones have half as much again for themselves.
//   - A huge one has more bytes than all the room. One at a time is let in, whatever else waits,
//     and counts for nobody but other huge ones.
//
// So with Options.QueueBytes of 64 MiB at most 96 MiB wait, and one huge call more, which is as
// large as the limits of values and of requests allow. Operations are one and a half times
// Options.Queue at most, and that one.
//
// Example: two clients store values of 120 MiB as fast as they can. One of them is under way, the
// other one is refused and tries again, and everybody else stores a byte as if they were not there.
// Rejected: a huge call that comes when nothing waits takes the room of all, until it is made. Then
// the two clients keep out everybody, for nothing waits when one of them has been answered.
type queue struct {
	operations, bytes room
	huge              atomic.Pointer[place] // the huge call that was let in
}

// smallest is which part of the room a small call has at most.
const smallest = 256

// room is how much there may be of something.
type room struct {
	most         int64
	small, large atomic.Int64 // what calls of either kind have taken
}

// place is what a call has taken.
type place struct {
	operations, bytes int64
	kind              kind
}

// kind is how much a call brings.
type kind byte

const (
	small kind = iota
	large
	huge
)

func (q *queue) init(o *Options) {
	q.operations.most, q.bytes.most = int64(o.Queue), int64(o.QueueBytes)
}

// take takes a place for a call, and reports whether there was one.
func (q *queue) take(operations, bytes int) (p place, ok bool) {
	p = place{operations: int64(operations), bytes: int64(bytes)}
	switch {
	case p.bytes > q.bytes.most:
		p.kind = huge
		own := p // of the heap, which other calls need not ask for
		return p, q.huge.CompareAndSwap(nil, &own)
	case p.operations > max(1, q.operations.most/smallest) || p.bytes > q.bytes.most/smallest:
		p.kind = large
	}
	// both at first: two calls that come together must not both find the last place
	fits := q.operations.take(p.operations, p.kind)
	if fits = q.bytes.take(p.bytes, p.kind) && fits; !fits {
		q.leave(p)
	}
	return p, fits
}

// leave gives a place back.
func (q *queue) leave(p place) {
	if p.kind == huge {
		q.huge.Store(nil)
		return
	}
	q.operations.of(p.kind).Add(-p.operations)
	q.bytes.of(p.kind).Add(-p.bytes)
}

// taken returns what waits or is under way.
func (q *queue) taken() (operations, bytes int64) {
	if p := q.huge.Load(); p != nil {
		operations, bytes = p.operations, p.bytes
	}
	return operations + q.operations.taken(), bytes + q.bytes.taken()
}

// of returns what calls of a kind have taken.
func (r *room) of(k kind) *atomic.Int64 {
	if k == large {
		return &r.large
	}
	return &r.small
}

func (r *room) taken() int64 { return r.small.Load() + r.large.Load() }

// take takes n of the room, and reports whether it was there. The caller gives it back in any case.
func (r *room) take(n int64, k kind) bool {
	if k == large {
		r.large.Add(n)
		return r.taken() <= r.most
	}
	return r.small.Add(n) <= r.most/2 || r.taken() <= r.most
}
