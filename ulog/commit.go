package ulog

import (
	"fmt"
	"runtime"
)

// # Leadership
//
// A client is answered when its update is in the file, and with SyncEach when it is on the disk.
// One write and one fsync for each update would make everybody wait in line for the disk. So one
// goroutine writes for all.
//
// The rule: a goroutine that waits becomes the leader if there is none. The leader takes all
// pending records as one group and writes them with one write and, with SyncEach, one fsync.
// Goroutines that come meanwhile append to the next group; the first of them is elected to lead it,
// the others sleep. When the leader is done it wakes everybody in its group, hands the leadership
// to the elected goroutine, and goes on with its own work.
//
// An example: SyncEach, and an fsync takes 1 ms.
//
//	A  append 1, leads: write and fsync {1} │ turn to B, replies
//	B     append 2, elected, waits for turn │ leads: write and fsync {2, 3, 4}  │ replies
//	C        append 3, sleeps               │                                   │ replies
//	D           append 4, sleeps            │                                   │ replies
//	   0 ms                                 1 ms                                2 ms
//
// Four updates took two fsyncs. With a thousand clients a group has about a thousand updates, and
// the rate grows with the clients while the latency stays between one and two fsyncs.
//
// Locks. The leadership is the right to write records: only the leader calls WriteAt behind the end
// of the newest segment, and the leader holds no lock during that write. writer.syncMu is held over
// fsyncs, headers and the change to the next segment. Log.mu guards what is in memory; nobody does
// I/O under Log.mu, because Append takes it under a database's commit lock. The order is
// leadership, syncMu, mu. Without SyncEach the flusher can therefore sync the file (syncMu) while
// the leader writes the next group, and nobody waits for an fsync.
//
// After the first failed write or fsync Log.err is set. From then on nothing is acknowledged, and
// the bytes that the failed write may have left are cut off as a torn group by the next Open.
//
// Rejected: a goroutine that does nothing but write. Each group would cost two switches between
// goroutines, even when a single client is connected; as the leader, the client's own goroutine
// writes. Rejected too: the leader waits some time for more updates before it writes. That delays a
// single client, and many clients do not need it: a group fills while the previous group is
// written.

const keepSize = 8 << 20 // larger buffers are not used again

// Wait returns nil when everything up to stamp s is as safe as the mode promises: written, or
// synced with Options.SyncEach. Otherwise it returns the error with which the log ended.
func (l *Log) Wait(s Stamp) error {
	if Stamp(l.acked.Load()) >= s {
		return nil
	}
	return l.write(s)
}

// Acked returns the newest stamp for which Wait returns at once. It costs one atomic load.
func (l *Log) Acked() Stamp { return Stamp(l.acked.Load()) }

// SyncsEach reports whether Wait waits for the disk.
func (l *Log) SyncsEach() bool { return l.opts.SyncEach }

// write makes sure that everything up to s is written, by this goroutine or another.
func (l *Log) write(s Stamp) error {
	for {
		l.mu.Lock()
		s = min(s, l.last)
		if safe, err := l.safe.last >= s, l.err; safe || err != nil {
			l.mu.Unlock()
			if safe {
				return nil
			}
			return err
		}
		if l.queue.phase == idle {
			l.queue.phase = gathering
			l.mu.Unlock()
			l.writer.lead()
			continue
		}
		done := l.queue.join(s)
		l.mu.Unlock()
		if done == nil {
			<-l.queue.turn
			l.writer.lead()
			continue
		}
		<-done
		if Stamp(l.acked.Load()) >= s {
			return nil
		}
	}
}

// join returns the channel that is closed when s is written, or nil for the goroutine that is
// elected.
func (q *queue) join(s Stamp) chan struct{} {
	if q.phase == writing && s <= q.taken {
		if q.current == nil {
			q.current = make(chan struct{})
		}
		return q.current
	}
	if q.phase == writing && !q.elected {
		q.elected = true
		return nil
	}
	if q.next == nil {
		q.next = make(chan struct{})
	}
	return q.next
}

// lead writes everything pending as one group. The caller is the leader until lead returns.
func (w *writer) lead() {
	l := w.log
	if w.company.expected() {
		w.yield()
	}
	g, err := w.take()
	if err != nil {
		g.abandon()
	} else {
		err = w.writeGroup(&g)
	}
	if err == nil && l.opts.SyncEach {
		_ = w.syncWritten() // a failed sync has ended the log: the waiters learn it from there
	}
	w.finish(g)
}

// yield lets others append before the leader takes the pending records.
func (w *writer) yield() {
	before := w.log.Last()
	runtime.Gosched()
	w.company.came(w.log.Last() != before)
}

// take makes the pending records the group to write.
func (w *writer) take() (group, error) {
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.pending.take(l.last, l.note)
	g.shared = l.newest.readers > 0
	q := &l.queue
	q.phase, q.taken, q.current, q.next, q.elected = writing, g.last, q.next, nil, false
	return g, l.err
}

// writeGroup writes a group with its commit record, to the next segment when this one is full.
func (w *writer) writeGroup(g *group) error {
	l := w.log
	records := len(g.buf)
	if len(g.large) > 0 {
		if a := w.fitting(g); a != nil {
			at, err := w.adopt(g, a)
			if err != nil {
				return err
			}
			return w.groupWritten(g, records, at)
		}
	}
	at := w.end()
	full := l.opts.Limit > 0 && at.off >= l.opts.Limit && !w.syncFirst(at)
	if w.next.Load() && w.next.Swap(false) || full {
		var err error
		if at, err = w.rotate(); err != nil {
			return err
		}
	}
	g.seal()
	if err := w.write(g, at.off); err != nil {
		return l.fail(fmt.Errorf("write update log: %w", err))
	}
	if err := w.makeRoom(g, at.seg, at.off+g.size()); err != nil {
		return l.fail(err)
	}
	if len(g.large) > 0 {
		defer l.flush.kickSync()
	}
	return w.groupWritten(g, records, tail{at.seg, at.off + g.size(), g.last, at.records + uint64(g.count-g.notes)})
}

// groupWritten notes that a group is in the newest segment, which now ends at the position at. The
// group's records are the first bytes of its buffer.
func (w *writer) groupWritten(g *group, records int, at tail) error {
	l := w.log
	if o := l.observer.Load(); o != nil {
		o.group(int64(g.count-g.notes), g.size())
	}
	w.beginEarly(at)
	copied := g.copyFor(records) // not under mu: whoever appends waits for it
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written, w.stated = at, g.note
	if l.newest.readers > 0 {
		l.newest.keep(g, g.buf[:records], copied, at)
	}
	return l.err
}

// write writes the group into the newest segment, with the large values where they belong.
func (w *writer) write(g *group, off int64) error {
	put := func(p []byte) error {
		n, err := w.f.WriteAt(p, off)
		off += int64(n)
		return err
	}
	from := 0
	for _, v := range g.large {
		if err := put(g.buf[from:v.at]); err != nil {
			return err
		}
		if err := put(v.value); err != nil {
			return err
		}
		from = v.at
	}
	return put(g.buf[from:])
}

// finish wakes the goroutines that wait for a group, and hands the leadership on.
func (w *writer) finish(g group) {
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if cap(g.buf) <= keepSize {
		l.pending.spare = g.buf[:0]
	}
	l.publishLocked()
	q := &l.queue
	if q.current != nil {
		close(q.current)
		q.current = nil
	}
	q.phase = idle
	if q.elected {
		q.phase = gathering
		q.turn <- struct{}{}
	}
}
