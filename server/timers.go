package server

import (
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/internal/rescue"
)

// backgroundWork is what the log calls a panic in such an action.
const backgroundWork = "work in the background"

// idleEvery is how often the server looks whether there has been no request, and collects some
// expired records then.
const idleEvery = 100 * time.Millisecond

// timers is what the server does without being asked: one goroutine for each action, until close.
type timers struct {
	log  logger
	quit chan struct{}
	wg   sync.WaitGroup
}

func newTimers(log logger) *timers { return &timers{log: log, quit: make(chan struct{})} }

// every calls action at a fixed interval. A panic of an action is in the log, as it would be in a
// request, and the next call comes.
func (t *timers) every(interval time.Duration, action func()) {
	t.wg.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-t.quit:
				return
			case <-tick.C:
				_ = rescue.Do(t.log.Logger, backgroundWork, action)
			}
		}
	})
}

// paced calls action at an interval that can change.
func (t *timers) paced(p *pace, action func()) {
	t.wg.Go(func() { p.run(t.quit, func() { _ = rescue.Do(t.log.Logger, backgroundWork, action) }) })
}

// on calls action for each news.
func (t *timers) on(news <-chan struct{}, action func()) {
	t.wg.Go(func() {
		for {
			select {
			case <-t.quit:
				return
			case <-news:
				_ = rescue.Do(t.log.Logger, backgroundWork, action)
			}
		}
	})
}

// close returns after the last action has ended.
func (t *timers) close() {
	close(t.quit)
	t.wg.Wait()
}

// pace is an interval that can change.
type pace struct {
	interval atomic.Int64  // a time.Duration; 0 or less: never
	changed  chan struct{} // of one: somebody has set interval
}

func newPace() *pace { return &pace{changed: make(chan struct{}, 1)} }

// get returns the interval.
func (p *pace) get() time.Duration { return time.Duration(p.interval.Load()) }

// set changes the interval. The next action comes that long from now; an equal interval changes
// nothing.
func (p *pace) set(interval time.Duration) {
	if p.interval.Swap(int64(interval)) == int64(interval) {
		return
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// run calls action at the interval until quit is closed.
func (p *pace) run(quit <-chan struct{}, action func()) {
	for {
		var due <-chan time.Time
		if interval := p.get(); interval > 0 {
			due = time.After(interval)
		}
		select {
		case <-quit:
			return
		case <-p.changed:
		case <-due:
			action()
		}
	}
}
