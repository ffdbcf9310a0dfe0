package ulog

import (
	"errors"
	"fmt"

	"gotycoon/internal/vfs"
)

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

// syncWritten syncs the groups written so far. One fsync serves everybody who waits for syncMu
// meanwhile.
func (w *writer) syncWritten() error {
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	return w.syncLocked()
}

// syncLocked is syncWritten for callers that hold syncMu.
func (w *writer) syncLocked() error {
	l := w.log
	l.mu.Lock()
	at, done, err := l.written, l.synced == l.written, l.err
	l.mu.Unlock()
	if done || err != nil {
		return err
	}
	if err := w.syncFileLocked(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.synced = at
	if l.opts.SyncEach {
		l.publishLocked()
	}
	return l.err
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

// syncFileLocked syncs the newest segment. The caller holds syncMu.
func (w *writer) syncFileLocked() error {
	l := w.log
	begun := l.observer.Load().begin()
	if err := w.f.Sync(); err != nil {
		return l.fail(fmt.Errorf("sync update log: %w", err))
	}
	l.observer.Load().synced(begun)
	w.seal(w.headed)
	return nil
}

// seal notes what the header of the newest segment says on disk. The caller holds syncMu.
func (w *writer) seal(h header) {
	l := w.log
	w.sealed = h
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = h.last
}

// writeHeaderLocked puts what is synced, and what is promised, into the header. The caller holds
// syncMu.
func (w *writer) writeHeaderLocked() error {
	l := w.log
	l.mu.Lock()
	h, err := header{l.synced.off, max(l.synced.last, l.promised)}, l.err
	l.mu.Unlock()
	if h == w.headed || err != nil {
		return err
	}
	if _, err := w.f.WriteAt(encodeHeader(h), 0); err != nil {
		return l.fail(fmt.Errorf("write segment header: %w", err))
	}
	w.headed = h
	return nil
}

// syncHeaderLocked makes the header say what is synced, on disk. The caller holds syncMu.
func (w *writer) syncHeaderLocked() error {
	if err := w.writeHeaderLocked(); err != nil || w.sealed == w.headed {
		return err
	}
	return w.syncFileLocked()
}

// rotate begins the next segment and returns where its records go. The full segment is synced with
// its final header first: readers rely on the headers of older segments to find a stamp. The
// remembered position is on disk in the new segment before any other record. So a power cut can
// never leave a newest segment without the position, and the full segment may be removed at any
// time. The caller is the leader.
func (w *writer) rotate() (tail, error) {
	l := w.log
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	at, err := w.endSegmentLocked()
	if err != nil {
		return tail{}, err
	}
	f, head, err := l.createSegment(at.seg+1, at.last, w.headed.last)
	if err != nil {
		return tail{}, l.fail(fmt.Errorf("begin segment: %w", err))
	}
	next := tail{at.seg + 1, head.size, at.last, at.records}
	if next.off, err = repeatState(f, w.stated.state, next); err != nil {
		return tail{}, l.fail(errors.Join(fmt.Errorf("begin segment: %w", err), f.Close()))
	}
	return next, w.beginInLocked(f, head, at, next)
}

// endSegmentLocked makes the newest segment end on the disk where it ends now, header included. The
// caller is the leader and holds syncMu.
func (w *writer) endSegmentLocked() (tail, error) {
	at := w.end()
	cut, err := w.giveRoomBack(at)
	if err != nil {
		return at, w.log.fail(err)
	}
	if err = w.syncLocked(); err == nil && cut {
		err = w.syncFileLocked() // zeros are nothing for a segment that is not the newest
	}
	if err == nil {
		err = w.syncHeaderLocked()
	}
	return at, err
}

// end returns the end of the written groups, which only the leader changes.
func (w *writer) end() tail {
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written
}

// beginInLocked goes over from a full segment, which ends at full, to the next one, which is on the
// disk up to next. The caller is the leader and holds syncMu.
func (w *writer) beginInLocked(f vfs.File, head header, full, next tail) error {
	l := w.log
	if err := w.closeFull(header{full.off, full.last}); err != nil {
		return l.fail(errors.Join(fmt.Errorf("close segment: %w", err), f.Close()))
	}
	w.f, w.headed = f, head
	w.seal(head)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written, l.synced = next, next
	return l.err
}

// closeFull closes a full segment. Its header gives up the promise, which the next segment's header
// has now.
func (w *writer) closeFull(full header) error {
	if w.headed != full {
		if _, err := w.f.WriteAt(encodeHeader(full), 0); err != nil {
			return err
		}
	}
	return w.f.Close()
}

const (
	quickSync = 8 << 20 // bytes that are synced while everybody waits
	growOn    = 2       // a segment may grow to this many times the limit while it is being synced
)

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

// BeginSegment has the next group written to a new segment, so that RemoveFiles can remove the
// present one. It does nothing while the present one is small.
func (l *Log) BeginSegment() {
	const small = 256 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written.off >= small {
		l.writer.next.Store(true)
	}
}
