package server

import "time"

// A server with one processor that waits for the disk.
//
// # The problem
//
// Go's monitor takes the processor of a thread that waits in the system at two of its looks, unless
// another processor is idle and the wait is shorter than 10 ms. A server that has given up all
// processors but one (crowd) has no idle one. The monitor looks every 20 µs after it has taken a
// processor, and only every 10 ms after it has taken none for about 30 ms. So it stays as it is:
//
//	looks     every 20 µs                      every 10 ms
//	fsync     ──┼──┼──┼──                      ─────────          (0.1 to 0.5 ms)
//	            it takes the processor for     it is seen once at most, and
//	            a thread with nothing to do    keeps its processor
//
// In the first state threads switch 11 to 13 times in an fsync, and get into the way of the clients'
// as well: 64 of them made 31,000 to 39,000 sets/s in 24 to 28 µs each. In the second, on the same
// minutes, threads switch 2 to 3 times, and the clients made 39,000 to 48,000 in 17 to 18 µs.
//
// # The rule
//
// Where threads switch that often, there are two processors for calmFor. The monitor takes none away
// then, and looks rarely when one of them goes again. If that does not help, the next attempt waits.
type calm struct {
	until time.Time     // there are two processors
	next  time.Time     // there are not before
	rest  time.Duration // after the latest attempt
}

const (
	calmFor    = 100 * time.Millisecond // three times what the monitor needs
	tooManyFor = 6                      // switches in a sync
	leastSyncs = 10                     // between two looks; a server with fewer has time

	leastUnrest = time.Second // between two attempts
	mostUnrest  = time.Minute
)

// look reports whether there are to be two processors. So many fsyncs of leaders of loops, and
// switches of threads that wait, have come since the look before. one says that there was one
// processor all the time.
func (c *calm) look(now time.Time, syncs, switches int64, one bool) bool {
	switch {
	case now.Before(c.until):
		return true
	case !one || syncs < leastSyncs:
		return false
	case switches < tooManyFor*syncs:
		if !now.Before(c.next) {
			c.rest = 0
		}
		return false
	case now.Before(c.next):
		return false
	}
	c.rest = min(max(leastUnrest, 2*c.rest), mostUnrest)
	c.until, c.next = now.Add(calmFor), now.Add(c.rest)
	return true
}
