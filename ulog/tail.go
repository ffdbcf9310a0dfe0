package ulog

import (
	"context"
	"sort"
	"time"
)

// pollInterval is how often Wait looks at a log that another process writes. The original's slaves
// look as often.
const pollInterval = 100 * time.Millisecond

// Wait returns nil when Next may return more than io.EOF, the error of ctx, or an error that says
// why the log will not grow any more.
func (r *Reader) Wait(ctx context.Context) error {
	if r.log == nil {
		return r.poll(ctx)
	}
	for {
		more, err := r.log.moreThan(r.seg, r.pos)
		if more == nil || err != nil {
			return err
		}
		select {
		case <-more: // or the log has ended
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *Reader) poll(ctx context.Context) error {
	t := time.NewTimer(pollInterval)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// More returns nil when Next may return more than io.EOF, or a channel that is closed when that may
// have changed. It is for readers of an open Log; the error says why the log will not grow any
// more.
func (r *Reader) More() (<-chan struct{}, error) { return r.log.moreThan(r.seg, r.pos) }

// moreThan returns nil when readers may read beyond a position, or a channel that is closed when
// that may have changed.
func (l *Log) moreThan(seg uint64, off int64) (<-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.safe.seg > seg || l.safe.seg == seg && l.safe.off > off {
		return nil, nil
	}
	if err := l.usableLocked(); err != nil {
		return nil, err
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed, nil
}

// Tail appends to dst the groups that Next would deliver next, where they are among the newest of
// the log: readers at the end share them, and need not read the files. The reader goes on behind
// them. Where there are none, Next says what there is.
func (r *Reader) Tail(dst []*Group) []*Group {
	if r.log == nil || r.f == nil || r.closed || r.Lost() != nil || !r.betweenGroups() {
		return dst
	}
	have := len(dst)
	dst = r.log.groupsAt(dst, r.seg, r.pos)
	if have == len(dst) {
		return dst
	}
	if dst[have].first <= r.after {
		return dst[:have]
	}
	last := dst[len(dst)-1]
	r.goOn(last.to, last.Last, last.records)
	return dst
}

// groupsAt appends to dst the safe groups that begin at a position.
func (l *Log) groupsAt(dst []*Group, seg uint64, off int64) []*Group {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.newest.groups
	i := sort.Search(len(all), func(i int) bool { return all[i].seg > seg || all[i].seg == seg && all[i].from >= off })
	for ; i < len(all); i++ {
		g := all[i]
		if g.seg != seg || g.from != off || l.safe.seg == seg && g.to > l.safe.off || l.safe.seg < seg {
			break
		}
		dst = append(dst, g)
		off = g.to
	}
	return dst
}

// Skip passes over everything that there is in the log, if the log has no update of a server behind
// the reader, or, with others, of any other server. It returns how many updates it passed over and
// the stamp of the last. Where it cannot tell without reading, it passes over nothing.
func (r *Reader) Skip(sid uint16, others bool) (n uint64, last Stamp) {
	if r.log == nil || r.f == nil || r.closed || r.Lost() != nil || !r.counted || !r.betweenGroups() {
		return 0, 0
	}
	r.log.mu.Lock()
	safe := r.log.safe
	may := safe.seg != r.seg || safe.off <= r.pos || r.log.newest.wanted(r.records, sid, others)
	r.log.mu.Unlock()
	if may {
		return 0, 0
	}
	n = safe.records - r.records
	r.goOn(safe.off, safe.last, safe.records)
	return n, safe.last
}

// betweenGroups reports whether the reader has delivered whole groups. A commit record that is
// still to be passed over does not count.
func (r *Reader) betweenGroups() bool {
	if r.pos == r.scan.off-commitSize && r.scan.closed {
		if rec, err := r.scan.record(r.pos, r.pos, r.scan.off); err == nil && isCommit(rec.message()) {
			r.pos = rec.end
		}
	}
	return r.pos == r.scan.off
}

// goOn goes on behind a group.
func (r *Reader) goOn(off int64, last Stamp, records uint64) {
	r.pos, r.scan.off, r.limit = off, off, max(r.limit, off)
	r.scan.last, r.scan.committed, r.scan.closed = max(r.scan.last, last), true, true
	r.headed, r.scan.head.size = true, max(r.scan.head.size, off)
	r.origins = nil
	r.records, r.counted = records, true
}

// Delivered returns how many of the log's updates (see Log.Updates) the reader has delivered or
// passed over. known is false until the reader has been at the end once.
func (r *Reader) Delivered() (n uint64, known bool) { return r.records, r.counted }

// Updates returns how many updates have been appended since Open and are as safe as the mode
// promises.
func (l *Log) Updates() uint64 { return l.safeTail().records }

// End returns the stamp of the newest record that readers may read, 0 where there is none. Later
// records have greater stamps, also after a restart.
func (l *Log) End() Stamp { return l.safeTail().last }
