package ulog

import (
	"errors"
	"fmt"
	"time"

	"gotycoon/internal/metrics"
	"gotycoon/internal/vfs"
)

// SyncTo returns nil when everything up to stamp s would survive a power cut.
func (l *Log) SyncTo(s Stamp) error {
	if err := l.Wait(s); err != nil {
		return err
	}
	l.mu.Lock()
	done := l.synced.last >= min(s, l.last)
	l.mu.Unlock()
	if done {
		return nil
	}
	return l.writer.syncWritten()
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

// tidy writes and syncs what nobody waited for, and updates the header if head is true.
func (w *writer) tidy(head bool) error {
	l := w.log
	if err := l.write(l.Last()); err != nil {
		return err
	}
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	if err := w.syncLocked(); err != nil || !head {
		return err
	}
	return w.writeHeaderLocked()
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
	err := w.syncLocked()
	if err == nil {
		err = w.syncHeaderLocked()
	}
	return w.end(), err
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

// Observer measures what a Log does. A nil Observer measures nothing and does not look at the
// clock.
type Observer struct {
	Fsyncs  *metrics.Histogram // nanoseconds
	Records *metrics.Histogram // of a group
	Bytes   *metrics.Histogram // of a group
}

// NewObserver returns an Observer that has seen nothing.
func NewObserver() *Observer {
	return &Observer{
		Fsyncs:  metrics.NewTimes(),
		Records: metrics.NewHistogram(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000),
		Bytes:   metrics.NewHistogram(1<<8, 1<<10, 1<<12, 1<<14, 1<<16, 1<<18, 1<<20, 1<<22, 1<<24),
	}
}

// Measure has the log measured from now on, by one Observer at a time.
func (l *Log) Measure(o *Observer) { l.observer.Store(o) }

// Observer returns the Observer that Measure was given last, or nil.
func (l *Log) Observer() *Observer { return l.observer.Load() }

func (o *Observer) group(records, bytes int64) {
	o.Records.Observe(records)
	o.Bytes.Observe(bytes)
}

func (o *Observer) begin() (now time.Time) {
	if o != nil {
		now = time.Now()
	}
	return now
}

func (o *Observer) synced(begun time.Time) {
	if o != nil && !begun.IsZero() {
		o.Fsyncs.Observe(int64(time.Since(begun)))
	}
}
