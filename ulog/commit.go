package ulog

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"gotycoon/internal/vfs"
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

// phase says what the leader does.
type phase int

const (
	idle      phase = iota // there is no leader
	gathering              // the leader has not yet taken the pending records
	writing                // the leader writes
)

// A queue holds the goroutines that wait for a group. All fields are guarded by Log.mu.
//
// One channel for each group, closed when the group is done, wakes all its waiters at once, and
// each runs on without taking a lock.
type queue struct {
	phase   phase
	taken   Stamp         // last stamp of the group being written
	current chan struct{} // closed when the group being written is done; nil: nobody waits
	next    chan struct{} // the same for the group being filled
	elected bool          // a goroutine waits on turn, to lead the group being filled
	turn    chan struct{} // hands over the leadership; buffers one
}

// A writer owns the newest segment: its file, its headers and the way to the next segment.
type writer struct {
	log *Log

	next   atomic.Bool // the next group begins a segment
	stated note        // what the newest written position record says; used by the leader

	syncMu sync.Mutex // held over fsync, header writes and rotation
	f      vfs.File   // the newest segment; changed by the leader under syncMu
	headed header     // the segment's header as last written; guarded by syncMu
	sealed header     // the segment's header as last synced; guarded by syncMu
}

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
	// Goroutines that are about to append get to run first, and join the group. Measured on 2
	// cores, 130-byte records without fsync, in thousands per second: 8 writers 1,900 instead of
	// 1,300, 64 writers 2,100 instead of 1,300, 512 writers 2,400 instead of 1,360; a writer alone
	// pays 0.1 µs. With fsync the difference is in the noise.
	runtime.Gosched()
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

// take makes the pending records the group to write.
func (w *writer) take() (group, error) {
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.pending.take(l.last, l.note)
	q := &l.queue
	q.phase, q.taken, q.current, q.next, q.elected = writing, g.last, q.next, nil, false
	return g, l.err
}

// syncFirst reports whether the leader is to go on in a full segment, so that the flusher can sync
// it first. The next segment cannot begin before the full one is on the disk. If more than
// quickSync bytes of the full segment are not synced, every goroutine that appends would wait for
// the leader's fsync; so syncFirst wakes the flusher instead. A segment that has grown to growOn
// times the limit ends in any case.
func (w *writer) syncFirst(at tail) bool {
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.synced; at.off >= growOn*l.opts.Limit || s.seg == at.seg && at.off-s.off < quickSync {
		return false
	}
	l.flush.kickSync()
	return true
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written, w.stated = at, g.note
	if l.newest.readers > 0 {
		l.newest.keep(g, g.buf[:records], at)
	}
	return l.err
}

// end returns the end of the written groups, which only the leader changes.
func (w *writer) end() tail {
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written
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

// publishLocked moves Acked and the readers' limit to the end of what is written, or of what is
// synced with SyncEach. After a failure it does nothing. The caller holds mu.
func (l *Log) publishLocked() {
	safe := l.written
	if l.opts.SyncEach {
		safe = l.synced
	}
	if l.err != nil || safe == l.safe {
		return
	}
	l.safe = safe
	l.acked.Store(uint64(safe.last))
	l.wakeReadersLocked()
}

// wakeReadersLocked wakes the readers in Wait. The caller holds mu.
func (l *Log) wakeReadersLocked() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
