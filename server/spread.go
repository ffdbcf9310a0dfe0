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
//	0.2 s   they run for 1.8 cores, none is idle       →  nothing to be won or lost
//
// The same clients on the server's machine use the second core: it stays with one loop. If there
// are more threads of others than cores, all stand in line, and a server with one loop would only
// get less of the machine: then it has all loops.
//
// Where leaders wait for the disk themselves (-oas), cores are idle because of it. If most requests
// are such updates, more loops would only make more fsyncs, with fewer updates each. A loop with
// few of them is as busy while it waits as it is otherwise.
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
	known usage // at the latest look
	at    time.Time

	others float64 // threads of others that run or stand in line, over about a second
}

const (
	spreadEvery = 200 * time.Millisecond // length of a window

	// loopCore is how much of a core must be idle for a further loop. With less the loop does not
	// pay: while it looks for news it takes time from clients on the same machine. One thread that
	// sends bulks leaves about half a core, and got 0.6 times as much where 0.3 were enough.
	loopCore = 0.7
)

func newSpread(loops *netio.Loops) *spread {
	return &spread{
		n: 1, set: loops.Use, usage: usageSoFar, cpus: runtime.NumCPU(),
		most:  func() int { return runtime.GOMAXPROCS(0) },
		cores: figuresWith(loops.Awake, loops.Syncing),
	}
}

// look ends a window and begins the next one, unless the server has hardly anything to do.
func (s *spread) look(now time.Time) {
	last, at := s.known, s.at
	s.known, s.at = s.usage(), now
	if s.n == 1 && float64(s.known.ran-last.ran) < quietAt*float64(now.Sub(at)) {
		s.begun = time.Time{}
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
		n /= 2
		s.rest = min(max(leastRest, 2*s.rest), mostRest)
		s.until = now.Add(s.rest)
	case n > 1 && busy < loops/2-freeCore:
		n /= 2
	case busy >= loops*(1-hardly) && (w.idle >= loopCore && !now.Before(s.until) || !s.fit(n)):
		n = min(2*n, most)
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
