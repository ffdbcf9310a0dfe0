package ulog

import (
	"errors"
	"fmt"
	"path/filepath"

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
	return l.syncWritten()
}

// syncWritten syncs the groups written so far. One fsync serves all who wait for syncMu meanwhile.
func (l *Log) syncWritten() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	return l.syncLocked()
}

// syncLocked is syncWritten for callers that hold syncMu.
func (l *Log) syncLocked() error {
	l.mu.Lock()
	at, done, err := l.written, l.synced == l.written, l.err
	l.mu.Unlock()
	if done || err != nil {
		return err
	}
	if err := l.syncFileLocked(); err != nil {
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

// tidy writes and syncs what nobody waited for, and updates the header when told to.
func (l *Log) tidy(head bool) error {
	if err := l.write(l.Last()); err != nil {
		return err
	}
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if err := l.syncLocked(); err != nil || !head {
		return err
	}
	return l.writeHeaderLocked()
}

// syncFileLocked syncs the newest segment. The caller holds syncMu.
func (l *Log) syncFileLocked() error {
	begun := l.observer.Load().begin()
	if err := l.f.Sync(); err != nil {
		return l.fail(fmt.Errorf("sync update log: %w", err))
	}
	l.observer.Load().synced(begun)
	l.seal(l.headed)
	return nil
}

// seal notes what the header of the newest segment says on disk. The caller holds syncMu.
func (l *Log) seal(h header) {
	l.sealed = h
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = h.last
}

// writeHeaderLocked puts what is synced, and what is promised, into the header. The caller holds syncMu.
func (l *Log) writeHeaderLocked() error {
	l.mu.Lock()
	h, err := header{l.synced.off, max(l.synced.last, l.promised)}, l.err
	l.mu.Unlock()
	if h == l.headed || err != nil {
		return err
	}
	if _, err := l.f.WriteAt(appendHeader(nil, h), 0); err != nil {
		return l.fail(fmt.Errorf("write segment header: %w", err))
	}
	l.headed = h
	return nil
}

// syncHeaderLocked makes the header say what is synced, on disk. The caller holds syncMu.
func (l *Log) syncHeaderLocked() error {
	if err := l.writeHeaderLocked(); err != nil || l.sealed == l.headed {
		return err
	}
	return l.syncFileLocked()
}

// rotate begins the next segment and returns where its records go. The full one is synced with its final header first: readers
// rely on the headers of older segments to find a stamp. What is remembered is in the new one on disk before there is anything else that
// could be the last that a power cut leaves of it, and before the full one can be removed. The caller is the leader.
func (l *Log) rotate() (tail, error) {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	at, err := l.endSegmentLocked()
	if err != nil {
		return tail{}, err
	}
	f, head, err := l.createSegment(at.seg+1, at.last, l.headed.last)
	if err != nil {
		return tail{}, l.fail(fmt.Errorf("begin segment: %w", err))
	}
	next := tail{at.seg + 1, head.size, at.last, at.records}
	if next.off, err = repeatState(f, l.stated.state, next); err != nil {
		return tail{}, l.fail(errors.Join(fmt.Errorf("begin segment: %w", err), f.Close()))
	}
	return next, l.beginInLocked(f, head, at, next)
}

// endSegmentLocked makes the newest segment end on the disk where it does now, header included. The caller is the leader and holds syncMu.
func (l *Log) endSegmentLocked() (tail, error) {
	err := l.syncLocked()
	if err == nil {
		err = l.syncHeaderLocked()
	}
	return l.leaderTail(), err
}

// beginInLocked goes over from a full segment, which ends at full, to the next one, which is on the disk up to next. The caller is the leader
// and holds syncMu.
func (l *Log) beginInLocked(f vfs.File, head header, full, next tail) error {
	if err := l.closeFull(header{full.off, full.last}); err != nil {
		return l.fail(errors.Join(fmt.Errorf("close segment: %w", err), f.Close()))
	}
	l.f, l.headed = f, head
	l.seal(head)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written, l.synced = next, next
	return l.err
}

// closeFull closes a full segment. What its header has promised, that of the next one promises now.
func (l *Log) closeFull(full header) error {
	if l.headed != full {
		if _, err := l.f.WriteAt(appendHeader(nil, full), 0); err != nil {
			return err
		}
	}
	return l.f.Close()
}

func (l *Log) segmentPath(n uint64) string { return filepath.Join(l.dir, segmentName(n)) }
