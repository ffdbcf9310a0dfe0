package server

import (
	"runtime"
	"time"

	"gotycoon/internal/netio"
)

// spread decides how many loops serve connections (internal/netio). One loop uses one core, and
// serves most for that core's time. More of them pay where the one is always busy while cores are
// idle: mostly when the clients are on other machines. Where others use the cores, two loops serve
// fewer requests than one, and the slowest of them much later.
//
// Example: two cores, 64 clients that never rest, on a machine of their own:
//
//	0.0 s   one loop runs for 1.0 core, 0.9 are idle   →  two loops
//	0.1 s   they run for 1.8 cores, none is idle       →  nothing to be won or lost
//
// The same clients on the server's machine use the second core: it stays with one loop. If there
// are more threads of others than cores, all stand in line, and a server with one loop would only
// get less of the machine: then it has all loops.
//
// Between the two are clients on the server's machine that leave a part of a core. With a further
// loop threads stand in line, but the loops may serve far more all the same: nearly twice as much
// for a client that asks in bulks, which are much work for the server and little for the client.
// So the server tries, and keeps loops that stand in line as long as they pay. After loopsProven it
// goes back, and tries again: by then the clients may be others.
//
//	0.0 s   one loop serves 5,500 bulks/s, 0.8 cores are idle        →  two loops
//	0.1 s   they serve 10,100, and 0.3 threads stand in line         →  it pays
//	5.1 s   one loop again, which serves 5,500                       →  two loops
//
// Where leaders wait for the disk themselves (-oas), cores are idle because of it. If most requests
// are such updates, more loops would only make more fsyncs, with fewer updates each. The same holds
// for a settler whose disk is nearly as quick (netio, syncs.go). A loop with few updates is as busy
// while it waits as it is otherwise.
type spread struct {
	set   func(n int)
	most  func() int            // loops
	cpus  int                   // cores of the machine
	usage func() usage          // of the process so far
	cores func() (cores, error) // figures of the threads so far

	n     int       // loops used
	begun time.Time // of the window; zero: there is none
	since cores     // figures at its beginning
	until time.Time // no loop is added before
	rest  time.Duration
	tries map[int]try // of numbers of loops that were added to
	known usage       // at the latest look
	at    time.Time

	others float64 // threads of others that run or stand in line, over about a second
}

// try is an addition of loops.
type try struct {
	half float64 // served in a second by half as many
	at   time.Time
}

const (
	spreadEvery = 100 * time.Millisecond // length of a window

	loopCore    = 0.5             // so much of a core must be idle for a further loop
	loopsPay    = 1.25            // so much more must be served if threads stand in line
	loopsProven = 5 * time.Second // for so long they are right
)

func newSpread(loops *netio.Loops) *spread {
	return &spread{
		n: 1, tries: map[int]try{}, set: loops.Use, usage: usageSoFar, cpus: runtime.NumCPU(),
		most:  func() int { return runtime.GOMAXPROCS(0) },
		cores: figuresWith(func() *netio.Loops { return loops }),
	}
}

// look ends a window and begins the next one, unless the server has hardly anything to do.
func (s *spread) look(now time.Time) {
	last, at := s.known, s.at
	s.known, s.at = s.usage(), now
	if s.n == 1 && float64(s.known.ran-last.ran) < quietAt*float64(now.Sub(at)) {
		s.begun, s.until, s.rest = time.Time{}, time.Time{}, 0 // what comes next may be of another kind
		return
	}
	sum, err := s.cores()
	if err != nil {
		return // the system has no figures
	}
	if !s.begun.IsZero() {
		w := windowOf(s.since, sum, now.Sub(s.begun))
		s.others += (float64(sum.busy) - w.threads() - s.others) * float64(spreadEvery) / float64(time.Second)
		s.decide(now, w)
	}
	s.begun, s.since = now, sum
}

// decide sets the number of loops by what a window has found.
func (s *spread) decide(now time.Time, w window) {
	n, most := s.n, s.most()
	loops := float64(n)
	syncs := w.synced >= hardly*loops
	busy := w.ran + w.waited + w.slept
	switch {
	case n > most:
		n = most
	case syncs && n > 1:
		n /= 2
	case syncs:
	case n > 1 && w.waited >= crowdedAt && s.fit(n/2):
		tried := s.tries[n]
		switch pays := tried.half > 0 && w.served >= loopsPay*tried.half; {
		case !pays:
			s.rest = min(max(leastRest, 2*s.rest), mostRest)
			s.until = now.Add(s.rest)
			n /= 2
		case now.Sub(tried.at) >= loopsProven:
			s.rest = 0
			n /= 2
			s.tries[n] = try{s.tries[n].half, now} // one step at a time
		}
	case n > 1 && busy < loops/2-freeCore:
		n /= 2
	case busy >= loops*(1-hardly) && (w.idle >= loopCore && !now.Before(s.until) || !s.fit(n)):
		n = min(2*n, most)
	}
	if n > s.n {
		s.tries[n] = try{w.served, now}
	}
	if n != s.n {
		s.n = n
		s.set(n)
	}
}

// fit reports whether nobody stands in line for a core while there are so many loops.
func (s *spread) fit(loops int) bool {
	return float64(loops)+s.others < float64(s.cpus)+tooMany
}
