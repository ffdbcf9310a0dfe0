package server

import (
	"sync"
	"time"

	"gotycoon/internal/rescue"
)

// backgroundWork is what the log calls a panic in such an action.
const backgroundWork = "work in the background"

// idleEvery is how often the server looks whether it has nothing to do.
const idleEvery = 100 * time.Millisecond

// timers is the goroutine for what the server does without being asked.
type timers struct {
	quit chan struct{}
	wg   sync.WaitGroup
}

func (p *process) startTimers() *timers {
	t := &timers{quit: make(chan struct{})}
	t.wg.Go(func() { p.repeat(t.quit, idleEvery, p.collectWhenIdle) })
	if p.cfg.Access.Path != "" {
		t.wg.Go(func() { p.repeat(t.quit, accessEvery, p.access.Poll) })
	}
	t.wg.Go(func() { p.repeat(t.quit, roomEvery, p.room.look) })
	if !p.cfg.ReadOnly {
		t.wg.Go(func() {
			p.tuned.sync.run(t.quit, func() { _ = rescue.Do(p.log.Logger, backgroundWork, p.synchronize) })
		})
	}
	if every := p.watchdogEvery(); every > 0 {
		t.wg.Go(func() { p.repeat(t.quit, every, p.feedWatchdog) })
	}
	return t
}

// stop returns after the last action has ended.
func (t *timers) stop() {
	close(t.quit)
	t.wg.Wait()
}

// repeat calls action from time to time. What panics in it is in the log, as it would be in a request.
func (p *process) repeat(quit <-chan struct{}, every time.Duration, action func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
			_ = rescue.Do(p.log.Logger, backgroundWork, action)
		}
	}
}

// collectWhenIdle removes some expired records when there has been no request since the last call.
func (p *process) collectWhenIdle() {
	if !p.active.Swap(false) {
		p.catalog.Idle()
	}
}

// synchronize is the periodic synchronization of -asi and -ash.
func (p *process) synchronize() {
	p.log.info("synchronizing databases")
	for i := range p.catalog.Len() {
		if err := p.catalog.DB(i).Synchronize(p.tuned.syncHard.Load(), nil); err != nil {
			p.log.error("database error: %v", err)
		}
	}
}
