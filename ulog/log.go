package ulog

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	kickSize = 4 << 20 // pending bytes from which on the flusher writes them though nobody waits
	keepSize = 8 << 20 // larger buffers are not used again

	quickSync = 8 << 20 // bytes that are synced while everybody waits
	growOn    = 2       // a segment may grow to this many times the limit while it is being synced
)

// A Log is an update log open for writing. It may be used by many goroutines.
//
// Invariants:
//   - Stamps strictly increase in the order of Append calls, across segments and openings.
//   - The records of one Append are in one group.
//   - Nothing is acknowledged after err is set, and err is never cleared.
//   - synced <= written <= last, and the size in a header on disk never is more than synced.
//   - Every new stamp is greater than all stamps that followers were told (stamps.told), and than
//     the stamp that the header had when the log was opened. While the log is open the header
//     promises up to promiseAhead more than followers were told, and new stamps may lie below that.
//
// Lock order: leadership (see commit.go) -> writer.syncMu -> mu; holds.removing -> mu.
type Log struct {
	folder
	id [16]byte

	acked  atomic.Uint64 // newest Stamp that Wait acknowledges; a copy of safe.last
	failed chan struct{} // closed when err is set: nothing is acknowledged from then on
	flush  flusher
	writer writer
	aheads aheads
	holds  holds // who needs which segments

	observer atomic.Pointer[Observer] // nil: nobody measures

	mu      sync.Mutex    // guards the fields below
	stamps                // given out and promised
	pending pending       // records that no group has taken yet
	bytes   int64         // record bytes appended since Open
	update  made          // the newest update
	written tail          // end of the groups written
	synced  tail          // end of the groups synced
	safe    tail          // written or synced, by mode, as of the last group without an error
	queue   queue         // who writes, and who waits for the writer
	changed chan struct{} // closed when safe grows; nil while no reader waits
	newest  newest        // groups in memory, for readers
	note    note          // of the newest position record; its state is replaced, never changed
	closed  bool
	err     error // first failed write or sync
}

// stamps are the bounds of the stamps to come. They are guarded by Log.mu.
type stamps struct {
	last Stamp // newest stamp given out
	past Stamp // stamps up to here are not given out any more: promised, or used by another server

	// See promise.go.
	told     Stamp // newest stamp that followers were told
	promised Stamp // what the next header promises
	kept     Stamp // what the header on disk promises
}

// next gives out a stamp.
func (s *stamps) next(now Stamp) { s.last = max(s.last+1, s.past+1, now) }

// made says when an update was made, and by which server.
type made struct {
	at Stamp
	by uint16
}

// A tail is a position between two groups.
type tail struct {
	seg  uint64 // number of the segment
	off  int64  // in the segment
	last Stamp  // newest stamp in front of the position

	records uint64 // updates written since Open
}

// Append gives updates consecutive stamps and returns the last one; the i-th of n updates has the
// stamp returned − (n − 1 − i). The updates will be written as a whole or not at all. Append does
// no I/O, so the caller may hold its own lock over Append and the change of its memory: both then
// happen in the same order. The updates are copied. Without updates Append returns Last.
//
// Updates with an Origin get stamps greater than the stamps that they had there.
func (l *Log) Append(ups []Update) (Stamp, error) { return l.AppendReplicated(ups, nil) }

// AppendReplicated is Append for the updates of another server, together with what is to be
// remembered about that server; f may be nil, and there may be no updates. The position record with
// f comes right before the updates: with n updates its stamp is the one returned − n.
func (l *Log) AppendReplicated(ups []Update, f *Position) (Stamp, error) {
	size, err := encodedSize(ups)
	if err != nil {
		return 0, err
	}
	msg, newest, err := encodePosition(ups, f)
	if err != nil {
		return 0, err
	}
	now := StampAt(l.opts.Now())
	l.mu.Lock()
	if err := l.usableLocked(); err != nil {
		l.mu.Unlock()
		return 0, err
	}
	l.past = max(l.past, newest)
	p := &l.pending
	refer := referred(ups)
	if refer > 0 {
		p.cut(l.last, l.note)
	}
	p.referTo += refer
	p.buf = slices.Grow(p.buf, size-refer+len(msg)+frameSize+commitSize)
	if p.count == 0 {
		p.first = max(l.last, l.past, now-1) + 1
	}
	if msg != nil {
		l.stamps.next(now)
		p.addNote(l.last, msg)
		size += frameSize + len(msg)
		if f != nil {
			l.note = note{bytes.Clone(f.State), l.last}
		}
	}
	for i := range ups {
		l.stamps.next(now)
		p.add(l.last, &ups[i])
	}
	if n := len(ups); n > 0 {
		l.update = made{l.last, ups[n-1].SID}
	}
	l.bytes += int64(size)
	last, kick := l.last, len(p.buf)+p.referTo >= kickSize && l.queue.phase == idle
	if refer > 0 {
		p.cut(l.last, l.note)
	}
	l.mu.Unlock()
	if kick {
		l.flush.kick()
	}
	return last, nil
}

// encodedSize returns the size of the records of updates, or an error that says why they cannot be
// logged.
func encodedSize(ups []Update) (int, error) {
	size := 0
	for i := range ups {
		n := messageSize(&ups[i])
		if ups[i].DBID == commitDBID {
			return 0, errReservedDB
		}
		if int64(n) > maxMessage {
			return 0, errTooLarge
		}
		size += frameSize + n
	}
	return size, nil
}

// Tick takes the next stamp without a record, and returns it.
func (l *Log) Tick() Stamp {
	now := StampAt(l.opts.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stamps.next(now)
	return l.last
}

// Last returns the newest stamp given out, or found in the log by Open.
func (l *Log) Last() Stamp {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// NewestUpdate returns the stamp of the newest update in the log and the server that made it. The
// stamp is 0 where the log has no update, or has updates only in segments before the one that was
// the newest when the log was opened. Last may be greater: stamps are given out without updates
// too.
func (l *Log) NewestUpdate() (Stamp, uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.update.at, l.update.by
}

// Bytes returns how many bytes of records were appended since Open.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// ID returns the identity of the log: 16 random bytes, chosen when its directory was first opened
// by a Log.
func (l *Log) ID() [16]byte { return l.id }

// Dir returns the directory as given to Open.
func (l *Log) Dir() string { return l.dir }

// Err returns the error of the write or fsync that failed, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// usableLocked returns an error that says why nothing can be appended. The caller holds mu.
func (l *Log) usableLocked() error {
	if l.err != nil {
		return l.err
	}
	if l.closed {
		return errClosed
	}
	return nil
}

// usable is usableLocked for callers that do not hold mu.
func (l *Log) usable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.usableLocked()
}

// fail ends the log with err, unless an earlier error has ended it, and returns the error that did.
func (l *Log) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.failed)
		l.wakeReadersLocked()
	}
	return l.err
}

// Close writes and syncs everything appended, updates the header and releases the directory.
// Further calls return errClosed.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errClosed
	}
	l.closed = true
	last := l.last
	l.wakeReadersLocked()
	l.mu.Unlock()

	l.flush.end()
	l.endPromises()
	err := l.writer.endAt(last)
	l.mu.Lock()
	for i := range l.pending.waiting {
		l.pending.waiting[i].abandon()
	}
	l.mu.Unlock()
	l.writer.syncMu.Lock()
	defer l.writer.syncMu.Unlock()
	if cerr := l.writer.f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("close update log: %w", cerr)
	}
	return err
}

// endAt makes the log end on disk at stamp last, header included.
func (w *writer) endAt(last Stamp) error {
	l := w.log
	if err := l.SyncTo(last); err != nil {
		return err
	}
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	return w.syncHeaderLocked()
}
