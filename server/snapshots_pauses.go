package server

import (
	"time"

	"gotycoon/snapshot"
)

// pauses leaves the processors to the clients while a snapshot is taken: it rests as long as it
// works.
type pauses struct {
	quit  <-chan struct{}
	calls int
	since time.Time // when the work began
	timer *time.Timer
}

const (
	workSlice    = 200 * time.Microsecond // how long a client may have to wait for the processor
	callsPerLook = 4                      // records between two looks at the clock
)

func newPauses(quit <-chan struct{}) *pauses {
	return &pauses{quit: quit, since: time.Now(), timer: time.NewTimer(0)}
}

// pause is called between records. It returns snapshot.ErrStopped when the server ends.
func (p *pauses) pause() error {
	if p.calls++; p.calls%callsPerLook != 0 {
		return nil
	}
	worked := time.Since(p.since)
	if worked < workSlice {
		return nil
	}
	p.timer.Reset(worked)
	select {
	case <-p.quit:
		return snapshot.ErrStopped
	case <-p.timer.C:
	}
	p.since = time.Now()
	return nil
}
