package server

import "time"

// A server with one processor that waits for the disk.
//
// # The problem
//
// Go's monitor takes the processor of a thread that waits in the system, if the monitor sees the
// same wait at two of its looks. For the first 10 ms it does not, if another processor is idle and
// nothing waits in the thread's queue. A server that has given up all processors but one (crowd)
// has no idle one. The monitor looks every 20 µs after it has taken a processor, and only every
// 10 ms when it has taken none for 10 to 30 ms. So the first state lasts, and the second one does
// while the leader hardly ever sleeps:
//
//	looks   every 20 µs                    every 10 ms
//	fsync   ──┼──┼──┼──                    ─────────
//	          the processor goes to a      is seen once, and keeps
//	          thread with nothing to do    its processor
//
// In the first state threads, the monitor's among them, switch 11 to 13 times in an fsync, and get
// into the way of the clients. 64 clients made 31,000 to 39,000 sets/s, at 24 to 28 µs of processor
// time each. In the second state threads switched 2 to 3 times, and the clients made 39,000 to
// 48,000 sets/s at 17 to 18 µs, in the same half a minute.
//
// # The rule
//
// Where threads switch that often, there are two processors for calmFor. One is idle, so the
// monitor takes none away, and it looks rarely when there is one again. If that does not help,
// the next attempt waits longer.
type calm struct {
	until time.Time     // there are two processors
	next  time.Time     // there are not before
	rest  time.Duration // after the latest attempt
}

const (
	calmFor    = 100 * time.Millisecond // three times and more what the monitor needs
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
		c.rest = 0 // it is calm: an attempt that does not help has the least rest again
		return false
	case now.Before(c.next):
		return false
	}
	if now.Sub(c.next) > mostUnrest {
		c.rest = 0 // what comes now may be of another kind
	}
	c.rest = min(max(leastUnrest, 2*c.rest), mostUnrest)
	c.until, c.next = now.Add(calmFor), now.Add(c.rest)
	return true
}
