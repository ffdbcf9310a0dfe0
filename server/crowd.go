package server

import (
	"math"
	"time"
)

// Crowded cores.
//
// # The problem
//
// The threads of a server that shares its machine with a busy client, or with anything else, are
// more than the cores. The system then runs them in turns of about 4 ms. A thread that has to stand
// in line stands still in the midst of a request, and the requests in the queue of its Go processor
// stand still with it: the other Go processors take work from that queue only when they find none
// of their own at the network.
//
// Example: two cores, a client with one thread that is always busy, 64 connections.
//
//	core 0   P0  P0  P0  P0  P0        two Go processors: half of the time P1 does not run,
//	core 1   P1  ──  P1  ──  P1        and its requests wait for 4 ms
//	             cl      cl
//
//	core 0   P0  P0  P0  P0  P0        one Go processor: nobody waits. It has as much of the
//	core 1   cl  cl  cl  cl  cl        cores as the two had, and less to do: no thread wakes another
//
// Gets from a database in memory, 64 connections: the 99th percentile is 4.5 ms with two processors
// and 1.1 ms with one, and the rate is a tenth higher with one.
//
// # The rule
//
// A server whose threads stand in line at all uses as many processors as the others leave it cores:
// what it has got and what was idle. It does so only as long as nobody stands in line then: threads
// that wait for a core get a share of it, so beside many strangers a server with fewer threads has
// less of the machine, and waits all the same. When more strangers come, or the processors are
// needed, it takes them back and rests before the next attempt, longer after each failure. When
// strangers go and leave a core, it takes one back without that.
//
// In a pause of the clients the number stays: the same ones are likely to come back, and a burst of
// requests is over before a window is.
//
// Fewer processors have a price: work that does not yield, such as a search, keeps one for 10 ms,
// and there may be no other. So while there are fewer, a goroutine takes the beat. When its beats
// come late, the processors come back at once. A checkpoint would make them late each time, so it
// says that it begins, and has a processor more (processors.work).
//
// What was rejected: threads of higher priority, for which a server has no right, and shorter turns
// of the system's scheduler, which would have to be the turns of the others.
type crowd struct {
	begun     time.Time     // of the window
	since     cores         // its figures at the beginning
	looks     int           // in the window
	busy      int           // sum of what they have found: threads that run or stand in line, of all processes
	late      time.Duration // sum of what beats came late
	beat      time.Time     // latest one in the window; zero: none
	heardFrom time.Time     // when late began to be counted

	given  int           // processors given up
	gaveAt time.Time     // when they were
	until  time.Time     // no processor is given up before
	rest   time.Duration // the next rest
	others float64       // threads of others, smoothed over some windows since then
	left   float64       // cores that others leave, smoothed likewise
	quiet  time.Time     // since when the server has hardly anything to do; zero: it has
}

const (
	crowdEvery = 200 * time.Millisecond // length of a window
	beatEvery  = 5 * time.Millisecond   // while there are fewer processors
	beatSlack  = 2 * time.Millisecond   // a round of a leader with many connections comes first
	beatsLate  = 20 * time.Millisecond  // in a window: the processors are needed

	leastRest = 10 * time.Second
	mostRest  = 5 * time.Minute
	// helpedFor is how long fewer processors must have been right for the next rest to be a short
	// one again.
	helpedFor = time.Minute

	othersWindows = 4 // others may need the cores for a window

	// In a pause of the clients the beat ends after deafAfter, and after forgetAfter the number is
	// the usual one again.
	deafAfter   = 5 * time.Second
	forgetAfter = time.Minute

	// These are parts of a core.
	lineAt    = 0.01 // so much standing in line, for each processor, is worth an attempt
	crowdedAt = 0.25 // so much standing in line is a crowd: the example has 0.7 to 1.2
	freeCore  = 0.5  // so much more than some cores is one more core
	clearly   = 0.3  // so much more than that is one that others have left
	mostly    = 0.75 // of the processors used, and the server has use for more
	hardly    = 0.1  // of a processor is not used: the server has use for one more
	quietAt   = 0.1  // a server that uses less has nobody who waits
	tooMany   = 0.75 // so much more than there are cores is a thread too many

	// looker is the thread of the look itself, which runs whenever one looks. Where all processors
	// are used, it is one of the threads that have worked before. The decision about an attempt
	// leaves that out: the attempt tells.
	looker = 1
)

// look returns how many of n processors the server gives up. It uses some of them nevertheless, for
// works, its checkpoints. Only the end of a window changes the number.
func (c *crowd) look(now time.Time, n, works int, sum cores) int {
	c.looks++
	c.busy += sum.busy
	length := now.Sub(c.begun)
	if c.begun.IsZero() {
		c.begin(now, sum)
	} else if length >= crowdEvery {
		w := windowOf(c.since, sum, length)
		w.others = float64(c.busy)/float64(c.looks) - w.threads()
		if used := n - max(0, c.given-works); c.given == 0 && used > 1 {
			w.others -= looker
		} else {
			w.others -= looker * min(1, max(0, float64(used)-w.threads()))
		}
		c.decide(now, n, works, w)
		c.begin(now, sum)
	}
	return c.given
}

// rests reports whether no window is needed: the server uses little.
func (c *crowd) rests(now time.Time, ran, since time.Duration) bool {
	if float64(ran) >= quietAt*float64(since) {
		c.quiet = time.Time{}
		return false
	}
	c.begun = time.Time{}
	if c.quiet.IsZero() {
		c.quiet = now
	} else if now.Sub(c.quiet) >= forgetAfter {
		c.given = 0
	}
	return true
}

// deaf reports whether nobody need take the beat.
func (c *crowd) deaf(now time.Time) bool {
	return c.given == 0 || !c.quiet.IsZero() && now.Sub(c.quiet) >= deafAfter
}

// forgetBeats has the next beat be the first one.
func (c *crowd) forgetBeats() { c.late, c.beat = 0, time.Time{} }

// begin begins a window.
func (c *crowd) begin(now time.Time, sum cores) {
	c.begun, c.since, c.looks, c.busy, c.late, c.beat = now, sum, 0, 0, 0, time.Time{}
}

// window is what a window has found, in cores, which is threads on the average.
type window struct {
	ran, waited float64 // threads of the server
	awake       float64 // threads of the server that kept vigil, which is neither
	slept       float64 // leaders of loops that waited for the disk
	synced      float64 // loops that waited for the disk with most of their work
	idle        float64 // vigils are idle, too: they end when others need the core
	others      float64 // threads of others that ran or stood in line
	served      float64 // connections in a second
}

// windowOf returns what has come to the figures in a time, without others.
func windowOf(since, sum cores, length time.Duration) window {
	part := func(d time.Duration) float64 { return float64(d) / float64(length) }
	w := window{waited: part(sum.waited - since.waited), awake: part(sum.awake - since.awake), slept: part(sum.slept - since.slept), synced: part(sum.synced - since.synced)}
	w.ran = part(sum.ran-since.ran) - w.awake
	w.idle = part(sum.idle-since.idle) + w.awake
	w.served = float64(sum.served-since.served) / length.Seconds()
	return w
}

// threads returns how many threads of the server ran or stood in line.
func (w window) threads() float64 { return w.ran + w.waited + w.awake }

// decide ends a window.
func (c *crowd) decide(now time.Time, n, works int, w window) {
	used := n - max(0, c.given-works)
	switch {
	case c.given > 0 && w.idle >= freeCore && w.ran >= float64(used)-hardly:
		c.takeBack(now)
	case c.given == 0:
		left := max(1, int(math.Ceil(w.ran+w.idle-freeCore)))
		if works == 0 && w.waited >= lineAt*float64(n) && left < n && fit(left, n, w.others) && !now.Before(c.until) {
			c.given, c.gaveAt, c.others, c.left = n-left, now, w.others, float64(left)
		}
	default:
		c.left += (w.ran + w.idle - freeCore - clearly - c.left) / othersWindows
		if left := int(math.Ceil(c.left)); left > used && w.ran >= mostly*float64(used) {
			c.given = min(c.given, max(0, n-left+works)) // strangers have gone
			return
		}
		if works > 0 {
			return // a checkpoint's thread may be one too many, and ends soon
		}
		if c.others += (w.others - c.others) / othersWindows; !fit(used, n, c.others) {
			c.takeBack(now)
		}
	}
}

// fit reports whether all threads that want a core have one while the server uses so many of n.
func fit(used, n int, others float64) bool {
	return float64(used)+others < float64(n)+tooMany
}

// heard notes a beat, and reports whether so many came late that the processors are needed.
func (c *crowd) heard(now time.Time) bool {
	if c.given == 0 {
		return false
	}
	if now.Sub(c.heardFrom) >= crowdEvery { // in a pause no window ends
		c.late, c.heardFrom = 0, now
	}
	if !c.beat.IsZero() {
		c.late += max(0, now.Sub(c.beat)-beatEvery-beatSlack)
	}
	c.beat = now
	if c.late < beatsLate {
		return false
	}
	c.takeBack(now)
	return true
}

// fail ends an attempt, if there is one, because nothing is known any more.
func (c *crowd) fail(now time.Time) {
	c.begun = time.Time{}
	if c.given > 0 {
		c.takeBack(now)
	}
}

// takeBack ends an attempt that has failed.
func (c *crowd) takeBack(now time.Time) {
	if c.rest == 0 || now.Sub(c.gaveAt) >= helpedFor {
		c.rest = leastRest
	}
	c.given, c.until = 0, now.Add(c.rest)
	c.rest = min(2*c.rest, mostRest)
}
