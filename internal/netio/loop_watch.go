package netio

import "time"

// watch looks at the leaders, and at connections that rest for too long.
func (all *Loops) watch() {
	looks := time.NewTicker(lookAtLoops)
	defer looks.Stop()
	idle := time.NewTicker(expireEvery)
	defer idle.Stop()
	for quiet := 0; ; {
		select {
		case <-all.ended:
			return
		case now := <-idle.C:
			all.expire(now)
			continue
		case <-all.wake:
			looks.Reset(lookAtLoops)
			quiet = 0
			continue
		case <-looks.C:
		}
		if all.look() {
			quiet = 0
		} else if quiet++; quiet == restAfter {
			looks.Stop()
			all.asleep.Store(true)
			if all.look() && all.asleep.CompareAndSwap(true, false) { // a round has begun meanwhile
				looks.Reset(lookAtLoops)
				quiet = 0
			}
		}
	}
}

// look looks at each leader, and reports whether there was any work.
func (all *Loops) look() (work bool) {
	for _, l := range all.loops {
		if l.look() {
			work = true
		}
	}
	return work
}

func (l *loop) look() (work bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	work = l.busy || l.turn != l.seen || l.scattering > 0 || l.served < len(l.ready) || l.settled < len(l.owing)
	l.scattering = max(0, l.scattering-1)
	l.looks++
	if l.busy && l.turn == l.seen {
		l.away[l.term] = l.looks
		if l.syncs.leading {
			l.syncs.usual = max(l.syncs.usual, slowDisk)
		}
		l.handOver()
		recent := 0
		for _, at := range l.away {
			if l.looks-at < awayFor {
				recent++
			}
		}
		if recent > mostAway {
			l.scattering = scatterLooks
		}
	}
	l.seen = l.turn
	return work
}

// expire ends connections that have rested for longer than Limits.SetIdle allows.
func (all *Loops) expire(now time.Time) {
	for _, l := range all.loops {
		l.mu.Lock()
		for _, c := range l.conns {
			if c == nil {
				continue
			}
			if until := c.until.Load(); until != 0 && now.UnixNano() >= until && c.rouse() {
				c.drained, c.term = false, 0
				go c.resume()
			}
		}
		l.mu.Unlock()
	}
}
