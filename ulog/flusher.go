package ulog

import (
	"sync/atomic"
	"time"

	"gotycoon/internal/rescue"
)

// headerInterval is the shortest time between two header writes while a segment grows. It is a
// little under a second, so that a tick that comes slightly early, a second after the last one,
// still writes the header.
const headerInterval = 900 * time.Millisecond

// A flusher owns the goroutine that writes what nobody waits for and keeps the disk at most an
// interval behind. It is started by Prepared.Begin and ended by Close.
type flusher struct {
	kicked chan struct{}
	sync   atomic.Bool // a kick asks for a sync as well
	stop   chan struct{}
	done   chan struct{}
}

func (fl *flusher) start(l *Log) {
	fl.kicked = make(chan struct{}, 1)
	fl.stop = make(chan struct{})
	fl.done = make(chan struct{})
	go func() { _ = rescue.Do(l.logger, "writing the update log "+l.dir, func() { fl.run(l) }) }()
}

func (fl *flusher) end() {
	close(fl.stop)
	<-fl.done
}

// kick asks for pending records to be written now.
func (fl *flusher) kick() {
	select {
	case fl.kicked <- struct{}{}:
	default:
	}
}

// kickSync asks for what is written to be synced now.
func (fl *flusher) kickSync() {
	fl.sync.Store(true)
	fl.kick()
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
