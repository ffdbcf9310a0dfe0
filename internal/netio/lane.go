package netio

import (
	"runtime"
	"sync/atomic"
	"time"
)

// lane is where requests that work for long take turns, so that others need not wait for a
// processor.
//
// # The problem
//
// Go lets a goroutine run for 10 ms before another has its turn. Eight searches with regular
// expressions on two processors make a get of one record wait for four of them, and look at the
// network only when the runtime's watchdog comes by: 50 ms on an idle machine, and 500 ms on one
// that is busy with other programs too.
//
// # The rule
//
// Long work never has more than half of the processors. Each call of heed says how long the request
// has worked since the last one. One clock for all requests adds these times up, divided by half
// the number of processors; a request whose work the clock has not reached sleeps until then.
//
// Example with two processors, so that the lane is one wide. A search alone works 5 ms between two
// calls and never sleeps. Of eight searches each works 5 ms and then sleeps for 35 ms, so that at
// any time one of them works, and the other processor is there for everybody else.
//
// A request may hold something when it calls heed: the visitor of a script has locked a key. No
// deadlock can come of that, because nobody waits for another request, only for a time. The sleep
// is bounded all the same, so that a thousand searches keep nobody for long.
//
// Rejected: tokens, of which a request needs one to work. A request with a token could wait for a
// key that a request without one has locked.
type lane struct {
	next atomic.Int64 // up to where the lane is taken, in nanoseconds since 1970
}

const (
	longestWork = 10 * time.Millisecond // between two calls of heed; the rest was waiting
	leastSleep  = time.Millisecond
	mostSleep   = 250 * time.Millisecond
)

// turn returns how long a request sleeps that has worked for some time on one of procs processors.
func (l *lane) turn(now time.Time, worked time.Duration, procs int) time.Duration {
	share := int64(min(worked, longestWork)) / int64(max(1, procs/2))
	for {
		next, at := l.next.Load(), now.UnixNano()
		wait := min(max(0, time.Duration(next-at)), mostSleep)
		if l.next.CompareAndSwap(next, min(max(next, at), at+int64(mostSleep))+share) {
			return wait
		}
	}
}

// takeTurns lets others have the processor, if the request has had it for long. now is the time of
// the call.
func (c *Conn) takeTurns(now time.Time) {
	s := &c.serving
	worked := now.Sub(s.worked)
	s.worked = now
	if c.opts.Limits == nil || worked <= 0 {
		return
	}
	sleep := c.opts.Limits.lane.turn(now, worked, runtime.GOMAXPROCS(0))
	if sleep < leastSleep {
		return // what is left stays on the clock
	}
	c.Leave()
	time.Sleep(sleep) //lint:sleep others use the processor
	s.worked = time.Now()
}
