package ulog

import (
	"fmt"
	"time"

	"gotycoon/internal/rescue"
)

// headerInterval is the shortest time between two header writes while a segment grows. It is a
// little under a second, so that a tick that comes slightly early, a second after the last one,
// still writes the header.
const headerInterval = 900 * time.Millisecond

func (fl *flusher) start(l *Log) {
	fl.kicked = make(chan struct{}, 1)
	fl.filled = make(chan struct{}, 1)
	fl.stop = make(chan struct{})
	fl.done = make(chan struct{})
	go func() { _ = rescue.Do(l.logger, "writing the update log "+l.dir, func() { fl.run(l) }) }()
}

// run ends at the first error, which is kept in the log.
func (fl *flusher) run(l *Log) {
	defer close(fl.done)
	tick := time.NewTicker(l.opts.SyncInterval)
	defer tick.Stop()
	var headed time.Time
	for {
		var err error
		select {
		case <-fl.stop:
			return
		case <-fl.kicked:
			if err = l.write(l.Last()); err == nil && fl.sync.Swap(false) {
				err = l.writer.syncWritten()
			}
		case <-fl.filled:
			err = l.writer.begin()
		case now := <-tick.C:
			due := now.Sub(headed) >= headerInterval
			if due {
				headed = now
			}
			err = l.writer.tidy(due)
		}
		if err != nil {
			return
		}
	}
}

func (fl *flusher) end() {
	close(fl.stop)
	<-fl.done
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
	if _, err := w.giveRoomBack(w.end()); err != nil {
		return l.fail(err)
	}
	return w.syncHeaderLocked()
}
