package relay

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

var errIdle = errors.New("nobody waits any more")

// listen hears the other servers from the first client that waits on. A connection that was lost is
// made again with growing pauses, which vary so that not all servers come at the same time.
func (r *Relay) listen() {
	next := shortestPause
	for r.awaitClient() {
		err := r.listenOnce()
		if r.ctx.Err() != nil {
			return
		}
		if r.heardOnce(err) {
			next = shortestPause
		}
		if err == nil {
			continue // nobody waits any more
		}
		timer := time.NewTimer(next/2 + rand.N(next/2))
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			timer.Stop()
			return
		}
		next = min(2*next, longestPause)
		r.Listen() // who waited may wait still
	}
}

// awaitClient waits until a client waits. It reports false at the end of the relay.
func (r *Relay) awaitClient() bool {
	for {
		select {
		case <-r.wanted:
		case <-r.ctx.Done():
			return false
		}
		if r.anybody() {
			return true
		}
		r.mu.Lock()
		r.stats.Deaf = nil // nobody misses anything
		r.mu.Unlock()
	}
}

func (r *Relay) anybody() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiters != nil && r.waiters.Anybody()
}

// listenOnce listens until the connection is lost, whose error it returns, or until nobody waits at
// two looks one after the other.
func (r *Relay) listenOnce() error {
	var looks sync.WaitGroup
	defer looks.Wait()
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	looks.Go(func() {
		ticker := time.NewTicker(lingers)
		defer ticker.Stop()
		for idle := false; ; {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			was := idle
			if idle = !r.anybody(); idle && was {
				cancel(errIdle)
			}
		}
	})
	err := r.signals.Listen(ctx, r.begun, r.hear)
	if context.Cause(ctx) == errIdle {
		return nil
	}
	return err
}

func (r *Relay) begun() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Listening, r.stats.Deaf = true, nil
}

// heardOnce notes that nothing is heard any more, and reports whether something could be. What was
// answered before is forgotten: whose those signals are is not heard.
func (r *Relay) heardOnce(err error) (did bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	did = r.stats.Listening
	r.stats.Listening, r.stats.Deaf = false, err
	clear(r.bids)
	return did
}
