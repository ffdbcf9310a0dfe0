package netio

import "time"

// Vigils.
//
// # The problem
//
// A leader without news sleeps, and is woken by the next ones. That costs 5 to 10 µs of processor
// time, in the system and in Go, whose threads wake each other, and 10 to 20 µs pass. A leader of
// busy clients hardly ever sleeps. But where a request waits for the reply to the one before, the
// leader sleeps for each: beside a client that is alone, or while a lock goes from hand to hand.
//
//	client   release │                       lock, release │
//	leader           └ awakes, serves, sleeps              └ awakes, …
//
// # The rule
//
// A leader may keep vigil: before it sleeps, it asks its epoll again and again, for 50 µs at most.
// That pays where it is awake when the news come, and where they come the sooner for it. It does
// not where clients send in a rhythm of their own: then it only burns what the sleep would have
// cost, and more.
//
// The two look alike from here: the waits are as long. What differs is what comes of it. So the
// leader tries: for some milliseconds it keeps no vigils, for as long it keeps them. It goes on
// with them if a quarter more has been served, until the next trial. Trials without success become
// rare.
//
//	resting           without   with      resting, with vigils    without   with      resting
//	──────────────────┼─────────┼─────────┼───────────────────────┼─────────┼─────────┼────────
//	100 ms to 3.2 s   10 ms     10 ms     200 ms                  10 ms     10 ms
//	                  500       1200      it pays                 500       500       it does not
//
// # Who else wants the core, or the processor
//
// Another thread that wants the core gets it, as from any thread that runs, and the vigil has an
// interruption. Goroutines that are ready are taken over by processors that are idle. If none is,
// or the leader has the only processor, they wait for vigilTurn: less than for a busy leader, which
// yields after each round. Then their turn takes time. Where vigils or turns are long several
// times, vigils end until the next trial: the server may have the right to use all of a core, but
// not for nothing. While other goroutines work for the loop (a settler, connections that wait for
// other servers), its leader keeps none.
//
// The time of vigils is counted (Awake). The server takes it for time in which a core was idle
// when it decides how many loops and processors there are (server/spread.go, crowd.go).
//
// # What was measured, and what was rejected
//
// 64 connections that all want one lock, and gets at half of what a server can do, with the
// server's CPU per request. Without vigils the lock made 29,392 and 29,442 requests/s in 18.6 and
// 18.4 µs, and a get took 12.3 and 12.0 µs. With them, in the same turns, it made 90,115 and 90,442
// requests/s in 10.9 and 10.6 µs, and a get took 12.2 and 12.4 µs.
//
// Rejected: the rule of KVM's halt polling, which goes by the length of waits. Always awake for up
// to 50 µs, a get took 16.0 µs instead of 11.0. With 15 µs it took 11.4, but the lock only made
// 78,000 requests/s. Rejected too: to sleep in the epoll itself instead of in Go's poller, which
// made 52,000 to 59,000 requests/s.
type vigil struct {
	phase   phase
	pays    bool      // the latest trial has paid
	began   time.Time // of the phase
	ends    time.Time
	count   uint64        // connections served before the phase
	without float64       // served in a second without vigils; 0: hardly any
	rest    time.Duration // latest rest after a trial that has not paid
	broken  int           // vigils and turns that others have made long, in the phase
	turned  time.Time     // when others had their latest turn between vigils
}

// phase is what a leader does about vigils.
type phase int

const (
	restingPhase phase = iota
	withoutVigils
	withVigils
)

const (
	longestVigil = 50 * time.Microsecond
	vigilTurn    = 100 * time.Microsecond // between two turns of other goroutines
	trialFor     = 10 * time.Millisecond  // each of its two phases
	paidFor      = 200 * time.Millisecond // after a trial that has paid
	leastRest    = 100 * time.Millisecond // after one that has not
	mostRest     = 3200 * time.Millisecond

	leastServed = 50   // without vigils; with less to do there is nothing to be won
	paying      = 1.25 // so much more must be served

	longLook   = 500 * time.Microsecond // a vigil that asks so rarely has lost its core meanwhile
	longTurn   = 200 * time.Microsecond // others have used the processor
	mostBroken = 8                      // in a phase
)

// length returns how long the leader may keep vigil now. It has served so many connections.
func (v *vigil) length(now time.Time, served uint64) time.Duration {
	if !now.Before(v.ends) {
		v.next(now, served)
	}
	if v.phase == withVigils || v.phase == restingPhase && v.pays {
		return longestVigil
	}
	return 0
}

// next begins the next phase.
func (v *vigil) next(now time.Time, served uint64) {
	rate := float64(served-v.count) / now.Sub(v.began).Seconds()
	length := trialFor
	switch v.phase {
	case restingPhase:
		if v.phase = withoutVigils; v.pays {
			v.rest = 0 // nobody has ended it
		}
	case withoutVigils:
		v.phase, v.without = withVigils, rate
		if served-v.count < leastServed {
			v.without = 0
		}
	case withVigils:
		v.phase, length = restingPhase, v.judge(rate)
	}
	v.began, v.ends, v.count, v.broken = now, now.Add(length), served, 0
}

// judge ends a trial, and returns how long the leader rests from trials.
func (v *vigil) judge(rate float64) time.Duration {
	v.pays = v.without > 0 && rate >= paying*v.without
	switch {
	case v.pays:
		return paidFor
	case v.without == 0:
		v.rest = 0
	}
	v.rest = min(max(leastRest, 2*v.rest), mostRest)
	return v.rest
}

// disturb notes that others have made a vigil, or a turn between two of them, long.
func (v *vigil) disturb(now time.Time) {
	if v.broken++; v.broken < mostBroken {
		return
	}
	v.phase, v.pays, v.without = restingPhase, false, 1
	v.ends = now.Add(v.judge(0))
}

// mayKeepVigil returns how long the leader may keep vigil now.
func (l *loop) mayKeepVigil(now time.Time) time.Duration { return l.vigil.length(now, l.turn) }

// endVigil notes what has come of the latest poll.
func (l *loop) endVigil() {
	p := l.poller
	if p.kept == 0 {
		return
	}
	l.all.awake.Add(int64(p.kept))
	if p.longest > longLook {
		l.vigil.disturb(time.Now())
	}
}

// letOthers lets other goroutines run, if the latest poll has not. Between vigils of a leader alone
// they have a turn once in vigilTurn: to offer them one each time would wake a thread that looks
// for them.
func (l *loop) letOthers(alone bool) {
	p, v := l.poller, &l.vigil
	switch {
	case p.slept():
	case p.kept == 0 || !alone:
		l.all.turns.take()
	default:
		began := time.Now()
		if began.Sub(v.turned) < vigilTurn {
			return
		}
		l.all.turns.take()
		now := time.Now()
		if v.turned = now; now.Sub(began) > longTurn {
			v.disturb(now)
		}
	}
}

// noVigil is the length of the vigils of a leader for whose loop other goroutines work.
func noVigil(time.Time) time.Duration { return 0 }

// Awake returns the time that leaders have spent in vigils: they used cores, and had nothing to do.
func (all *Loops) Awake() time.Duration {
	if all == nil {
		return 0
	}
	return time.Duration(all.awake.Load())
}
