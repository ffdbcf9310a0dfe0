package engine

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// fault is something bad. It happens, lasts, and is mended.
type fault struct {
	name string
	// alone is for faults of PostgreSQL: two of them at once are more than a standby is for.
	alone bool
	// happen returns what mends it, nil if nothing could happen now.
	happen func(s *stage) (mend func())
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

var faults = []fault{
	{"kill", false, func(s *stage) func() {
		v := s.any()
		if v == nil {
			return nil
		}
		s.kill(v)
		return func() { s.launch(v) }
	}},
	{"pause", false, func(s *stage) func() {
		v := s.any()
		if v == nil {
			return nil
		}
		s.signal(v, syscall.SIGSTOP)
		return func() {
			if v.proc != nil {
				s.signal(v, syscall.SIGCONT)
			}
		}
	}},
	{"cut", false, func(s *stage) func() { return s.spoil(condition{}, true) }},
	{"hold", false, func(s *stage) func() { return s.spoil(condition{held: true}, s.rnd.IntN(2) == 0) }},
	{"shut", false, func(s *stage) func() { return s.spoil(condition{shut: true}, true) }},
	{"slow", false, func(s *stage) func() { return s.spoil(condition{delay: ms(1 + s.rnd.IntN(40))}, false) }},
	{"swallow", false, func(s *stage) func() { return s.spoil(condition{swallow: 1 + s.rnd.IntN(4)}, true) }},
	{"forget", false, func(s *stage) func() {
		for _, l := range s.some() {
			l.forget()
		}
		return func() {}
	}},
	{"crash", true, func(s *stage) func() {
		require.NoError(s.t, s.nodes[s.primary].Crash())
		return func() { require.NoError(s.t, s.nodes[s.primary].Start()) }
	}},
	{"crash until all know", true, func(s *stage) func() {
		require.NoError(s.t, s.nodes[s.primary].Crash())
		s.unready()
		return func() { require.NoError(s.t, s.nodes[s.primary].Start()) }
	}},
	{"failover", true, func(s *stage) func() { return s.failover(0) }},
	{"failover, standby behind", true, func(s *stage) func() { return s.failover(ms(s.rnd.IntN(3000))) }},
	{"standby hangs", true, func(s *stage) func() {
		s.replication.set(condition{held: true}, false)
		breaks := s.rnd.IntN(2) == 0
		return func() { s.replication.set(condition{}, breaks) }
	}},
	{"standby crashes", true, func(s *stage) func() {
		b := s.nodes[1-s.primary]
		require.NoError(s.t, b.Crash())
		return func() { require.NoError(s.t, b.Start()) }
	}},
}

// spoil changes links of servers, until they are good again.
func (s *stage) spoil(c condition, breaks bool) func() {
	links := s.some()
	for _, l := range links {
		l.set(c, breaks && !c.held)
	}
	return func() {
		for _, l := range links {
			l.set(condition{}, breaks)
		}
	}
}

// failover has the standby take the primary's place, after a time in which nothing has come to it:
// what it lacks then has not been acknowledged to anybody.
func (s *stage) failover(behind time.Duration) func() {
	s.inStep()
	if behind > 0 {
		s.replication.set(condition{held: true}, false)
		wait(s.t.Context(), behind)
	}
	old := s.nodes[s.primary]
	require.NoError(s.t, old.Crash())
	s.replication.set(condition{shut: true}, true)
	s.primary = 1 - s.primary
	require.NoError(s.t, s.nodes[s.primary].Promote())
	s.terms++
	return func() {
		require.NoError(s.t, os.RemoveAll(old.Dir()))
		s.addStandby()
	}
}

// unready waits until the servers that run say that the engine is away.
func (s *stage) unready() {
	for _, v := range s.servers {
		if v.proc == nil || v.paused {
			continue
		}
		said := ""
		require.True(s.t, eventually(soon, func() bool {
			_, said = v.ready()
			return strings.HasPrefix(said, "503 the engine ")
		}), "server %d does not say that the engine is away, but %q", v.index, said)
	}
}

// deck are the faults that happen next: each kind once, in any order.
func (s *stage) deck() []fault {
	only := os.Getenv("GOTYCOON_ENGINE_ONLY")
	_, long := os.LookupEnv("GOTYCOON_ENGINE_FAULTS")
	deck := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool {
		// until a connection is given up, and a standby is copied, takes longer than a usual run has
		return !long && (f.name == "forget" || f.name == "failover, standby behind") || only != "" && !slices.Contains(strings.Split(strings.ReplaceAll(only, ", ", ","), ","), strings.ReplaceAll(f.name, ", ", " "))
	})
	s.rnd.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

// round has a fault happen, perhaps with another one meanwhile, and waits until all servers serve.
func (s *stage) round(f fault, lasts []int, did map[string]int, slowest map[string]time.Duration) {
	s.t.Helper()
	mend := f.happen(s)
	if mend == nil {
		return
	}
	did[f.name]++
	wait(s.t.Context(), ms(lasts[s.rnd.IntN(len(lasts))]))
	if s.rnd.IntN(3) == 0 {
		deck := slices.DeleteFunc(s.deck(), func(f fault) bool { return f.alone })
		if len(deck) > 0 {
			if also := deck[0].happen(s); also != nil {
				did[deck[0].name]++
				wait(s.t.Context(), ms(lasts[s.rnd.IntN(len(lasts))]))
				also()
			}
		}
	}
	s.alive()
	mend()
	slowest[f.name] = max(slowest[f.name], s.serve(s.servers))
	wait(s.t.Context(), ms(s.rnd.IntN(300)))
}
