package db

import (
	"sync/atomic"
	"time"
)

// pacing slows down clients that bring records into a file faster than the collector removes them,
// see "When clients are faster" in collector.go. The zero value lets everybody go on.
type pacing struct {
	excess atomic.Int64 // see excess
	cost   atomic.Int64 // nanoseconds that the removal of a record takes
	next   atomic.Int64 // when the turn of the next update comes, in nanoseconds since 1970
}

// A file may exceed a limit by the slack before anybody waits.
const (
	slackShare = 64 // part of the limit
	leastSlack = 1024
)

// excess returns by how many thousandths of the slack a value exceeds a limit.
func excess(value, limit int64) int64 {
	return (value - limit) * 1000 / max(limit/slackShare, leastSlack)
}

// took takes down how long it took to remove n records.
func (p *pacing) took(d time.Duration, n int64) {
	if n > 0 {
		p.cost.Store(int64(d) / n)
	}
}

// turn returns how long updates of n records are to wait.
func (p *pacing) turn(now time.Time, n int64) time.Duration {
	over := p.excess.Load() - 1000
	if over <= 0 || n == 0 {
		return 0
	}
	share := p.cost.Load() * n * min(over, 1000) / 500
	for {
		last, at := p.next.Load(), now.UnixNano()
		if p.next.CompareAndSwap(last, max(last, at)+share) {
			return time.Duration(max(0, last-at))
		}
	}
}
