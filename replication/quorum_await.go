package replication

import (
	"context"
	"slices"

	"gotycoon/ulog"
)

// A cluster waits for followers without a client: before the primary of a term serves, before
// another one takes over, and before a member is removed. These waits count the followers that are
// there now, by the rule of now, and not a watermark of the past.

// AwaitRequired returns nil when as many followers as are required have acknowledged everything up
// to a stamp, or the error of ctx.
func (q *Quorum) AwaitRequired(ctx context.Context, at ulog.Stamp) error {
	return q.watch(ctx, at, func() bool { return q.have(at, q.counts) >= q.Required() })
}

// AwaitRule returns nil when n followers for which counts returns true have acknowledged everything
// up to a stamp, or the error of ctx.
func (q *Quorum) AwaitRule(ctx context.Context, n int, counts func(sid uint16) bool, at ulog.Stamp) error {
	return q.watch(ctx, at, func() bool { return q.have(at, counts) >= n })
}

// have returns how many followers that count have acknowledged everything up to a stamp; with nil
// all count. The caller holds mu.
func (q *Quorum) have(at ulog.Stamp, counts func(sid uint16) bool) (n int) {
	for _, m := range q.members {
		if acked, _ := m.here(); acked >= at && (counts == nil || counts(m.sid)) {
			n++
		}
	}
	return n
}

// AwaitFollower returns nil when the follower with a server ID has acknowledged everything up to a
// stamp, or the error of ctx.
func (q *Quorum) AwaitFollower(ctx context.Context, sid uint16, at ulog.Stamp) error {
	return q.watch(ctx, at, func() bool {
		m := q.members[sid]
		if m == nil {
			return false
		}
		acked, _ := m.here()
		return acked >= at
	})
}

// usual returns the newest stamp that as many followers as a database requires have acknowledged; a
// number below 0 means the server's number.
func (q *Quorum) usual(required int) ulog.Stamp {
	if required < 0 {
		required = q.Required()
	}
	return q.Confirmed(required, 0)
}

// reach returns a channel that is closed when the required followers have everything up to a stamp.
// end ends the wait.
func (q *Quorum) reach(at ulog.Stamp, required int) (reached <-chan struct{}, end func()) {
	w := q.beginWatch(at, func() bool { return q.usual(required) >= at })
	return w.done, func() { q.unwatch(w) }
}

// watch has the followers asked for a stamp, and waits until reached.
func (q *Quorum) watch(ctx context.Context, at ulog.Stamp, reached func() bool) error {
	w := q.beginWatch(at, reached)
	defer q.unwatch(w)
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// beginWatch has the followers asked for a stamp, and begins a watch.
func (q *Quorum) beginWatch(at ulog.Stamp, reached func() bool) *watch {
	w := &watch{reached, make(chan struct{})}
	q.mu.Lock()
	defer q.unlock()
	if reached() {
		close(w.done)
		return w
	}
	q.watches = append(q.watches, w)
	q.askFor(at)
	return w
}

func (q *Quorum) unwatch(w *watch) {
	q.mu.Lock()
	defer q.unlock()
	q.watches = slices.DeleteFunc(q.watches, func(o *watch) bool { return o == w })
}
