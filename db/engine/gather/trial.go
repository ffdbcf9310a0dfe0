package gather

import (
	"sync"
	"time"

	"gotycoon/db/engine"
)

// trial knows for how long the lanes have tried to make updates without an answer to any of them.
//
// Only the engine's answer to a group counts, which is that it was made, or why it never will be.
// Reads are no answer, and neither is what Settle says of a group that was not made: an engine
// whose commits wait for a lock, or for a standby, answers both of them at once, and balancers that
// are told that it is back send all clients to where no update is made.
//
// A lane that has nothing more to try, since all callers have left, proves nothing either. If the
// engine has answered probes meanwhile, updates alone are stuck in it. So what the trial has taken
// by then counts for another Options.Timeout, and goes on if somebody asks for an update meanwhile.
// After that the engine gets the benefit of the doubt: balancers must send somebody, or nobody
// finds out that updates are made again. If the engine has not answered anything, it was away, and
// is back with its first answer.
type trial struct {
	g *Gather

	mu       sync.Mutex // also for since and stuck of the lanes
	answered time.Time  // when an update was answered last
	spent    time.Duration
	ended    time.Time // when a lane gave up, which makes spent
}

// begins is called when a lane begins with a group, or tries it again.
func (r *trial) begins(l *lane) {
	if l.late { // it waits for a transaction, and not for the engine
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); l.since.IsZero() {
		l.since, l.stuck = now.Add(-r.left(now)), false
	}
}

// ends is called when the engine has answered an update of a lane.
func (r *trial) ends(l *lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.since, r.answered, r.spent = time.Time{}, time.Now(), 0
}

// drops is called when a lane's group was refused by a read. What was known before is still known.
func (r *trial) drops(l *lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.since = time.Time{}
}

// givesUp is called when a lane has nothing to try any more, or has answered its group without an
// update. The last callers of a group may leave just before the lane tries it again.
func (r *trial) givesUp(l *lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); !l.since.IsZero() && l.stuck {
		r.spent, r.ended = max(r.left(now), r.of(l, now)), now
	}
	l.since = time.Time{}
}

// watch asks the engine every second whether it is there while lanes try for longer than that. What
// a lane has tried since before the engine was back from an outage, the outage explains.
func (r *trial) watch() {
	for r.g.sleep(time.Second) {
		if trying := r.trying(); len(trying) > 0 && r.g.answers() {
			r.mu.Lock()
			for l, since := range trying {
				l.stuck = l.stuck || l.since.Equal(since) && !r.g.outage.away() && since.UnixNano() > r.g.outage.over.Load()
			}
			r.mu.Unlock()
		}
	}
}

// trying returns the lanes that have tried for a while, and since when.
func (r *trial) trying() map[*lane]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all map[*lane]time.Time
	for _, l := range r.g.lanes {
		if l.since.IsZero() || r.of(l, time.Now()) < time.Second {
			continue
		}
		if all == nil {
			all = map[*lane]time.Time{}
		}
		all[l] = l.since
	}
	return all
}

// silence returns for how long no update was answered.
func (r *trial) silence() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	longest := r.left(now)
	for _, l := range r.g.lanes {
		if !l.since.IsZero() {
			longest = max(longest, r.of(l, now))
		}
	}
	return longest
}

// of returns for how long a lane has tried without an answer to anybody; r.mu is held.
func (r *trial) of(l *lane, now time.Time) time.Duration {
	return min(now.Sub(l.since), now.Sub(r.answered))
}

// left returns what still counts of the trials that have ended without an answer; r.mu is held.
func (r *trial) left(now time.Time) time.Duration {
	if now.Sub(r.ended) > r.g.opts.Timeout {
		return 0
	}
	return r.spent
}

// settles reports whether a group, or a read for it, with such an end need not be tried again as it
// is.
func settles(err error) bool {
	if _, locked := engine.IsLocked(err); err == nil || locked {
		return true
	}
	kind := engine.KindOf(err)
	return kind == engine.Refused || kind == engine.Full
}
