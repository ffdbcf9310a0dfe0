package cluster

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gotycoon/compat/history"
)

// misfortune is something bad. It happens, lasts, and is mended.
type misfortune struct {
	name string
	// happen returns what mends it, nil if nothing could happen now.
	happen func(s *stage) (mend func())
}

// stage is a cluster with clients, to which misfortunes happen.
type stage struct {
	*cluster
	play   *play
	rnd    *rand.Rand
	paused map[*member]bool
	only   string // the misfortunes that may happen; empty: all
	struck bool   // the latest misfortune is that of the primary
}

// any returns a member that runs: the primary, as far as is known, in two of three cases.
func (s *stage) any() *member {
	m := s.play.primary()
	if s.struck = s.rnd.IntN(3) > 0 && m.proc != nil && !s.paused[m]; s.struck {
		return m
	}
	for range 20 {
		if m := s.members[s.rnd.IntN(len(s.members))]; m.proc != nil && !s.paused[m] {
			return m
		}
	}
	return nil
}

// other returns another member than m.
func (s *stage) other(m *member) *member {
	return s.members[(m.index+1+s.rnd.IntN(len(s.members)-1))%len(s.members)]
}

// around are all ways to a member and from it.
func (s *stage) around(m *member, in, out bool) (ways []way) {
	for i := range s.members {
		if i == m.index {
			continue
		}
		if in {
			ways = append(ways, way{i, m.index})
		}
		if out {
			ways = append(ways, way{m.index, i})
		}
	}
	return ways
}

func (s *stage) chance() bool { return s.rnd.IntN(2) == 0 }

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

var misfortunes = []misfortune{
	{"kill", func(s *stage) func() { return s.end(true) }},
	{"kill", func(s *stage) func() { return s.end(true) }},
	{"stop", func(s *stage) func() { return s.end(false) }},
	{"kill all", func(s *stage) func() {
		var mend []func()
		for range s.members {
			mend = append(mend, s.end(true))
		}
		return func() {
			for _, f := range mend {
				if f != nil {
					f()
				}
			}
		}
	}},
	{"pause", func(s *stage) func() {
		m := s.any()
		if m == nil {
			return nil
		}
		m.signal(syscall.SIGSTOP)
		s.paused[m] = true
		return func() {
			delete(s.paused, m)
			if m.proc != nil {
				m.signal(syscall.SIGCONT)
			}
		}
	}},
	{"cut off", func(s *stage) func() {
		m := s.any()
		if m == nil {
			return nil
		}
		return s.spoil(s.bad(), s.around(m, true, true)...)
	}},
	{"cut one way", func(s *stage) func() {
		m := s.any()
		if m == nil {
			return nil
		}
		in := s.chance()
		return s.spoil(condition{held: true}, s.around(m, in, !in)...)
	}},
	{"cut a pair", func(s *stage) func() {
		m := s.any()
		if m == nil {
			return nil
		}
		n := s.other(m)
		ways := []way{{m.index, n.index}}
		if s.chance() {
			ways = append(ways, way{n.index, m.index})
		}
		return s.spoil(s.bad(), ways...)
	}},
	{"slow", func(s *stage) func() {
		m := s.any()
		if m == nil {
			return nil
		}
		return s.spoil(condition{delay: ms(1 + s.rnd.IntN(60))}, s.around(m, true, s.chance())...)
	}},
	{"flaky", func(s *stage) func() {
		m := s.any()
		if m == nil {
			return nil
		}
		s.net.set(condition{}, true, s.around(m, true, true)...)
		return func() {}
	}},
	{"full disk", func(s *stage) func() {
		m := s.any()
		if m == nil || !m.own {
			return nil
		}
		if err := m.fill(); err != nil {
			s.t.Log(err)
			return nil
		}
		return func() {
			m.empty()
			m.revive() // or later: its end may be under way
		}
	}},
	{"hung disk", func(s *stage) func() { return s.hangs(false) }},
	{"slow disk", func(s *stage) func() { return s.hangs(true) }},
	{"forget", func(s *stage) func() {
		if m := s.any(); m != nil && !m.witness {
			s.forget(m)
		}
		return func() {}
	}},
	{"switchover", func(s *stage) func() { s.switchOver(); return func() {} }},
	{"switchover", func(s *stage) func() { s.switchOver(); return func() {} }},
}

// bad is how ways are when nothing passes.
func (s *stage) bad() condition {
	if s.rnd.IntN(3) == 0 {
		return condition{shut: true}
	}
	return condition{held: true}
}

func (s *stage) spoil(c condition, ways ...way) func() {
	s.net.set(c, false, ways...)
	breaks := s.chance()
	return func() { s.net.set(condition{}, breaks, ways...) }
}

// end ends a process, which is mended by another.
func (s *stage) end(kill bool) func() {
	m := s.any()
	if m == nil {
		return nil
	}
	m.stop(kill)
	return func() {
		if s.rnd.IntN(4) == 0 {
			m.ahead = []time.Duration{0, 0, time.Hour, -time.Hour, ms(200), ms(-200), time.Second}[s.rnd.IntN(7)]
		}
		m.restart()
	}
}

// forget has a member remove what it can of its update log.
func (s *stage) forget(m *member) {
	if w, err := history.DialHTTP(m.port, askLimit); err == nil {
		defer w.Close()
		_, _, _ = w.Procedure("ulog_remove", askLimit, "ts", "now") // or not
	}
}

// switchOver has the primary hand over. It is no failure when that cannot be.
func (s *stage) switchOver() {
	data := s.data()
	to := data[s.rnd.IntN(len(data))]
	if to == s.play.primary() {
		to = data[(to.index+1)%len(data)]
	}
	by := s.any()
	if by == nil {
		return
	}
	if err := by.change("switchover", "name", to.name); err != nil {
		s.t.Logf("switchover to %d: %v", to.index, err)
	}
}

// suspicious is a time without an answer that is worth a look at the logs: nothing is wrong any more.
const suspicious = 6 * time.Second

// round has one misfortune happen, or two that overlap, and waits until the cluster serves again.
func (s *stage) round(t *testing.T, did map[string]int, f *figures) {
	t.Helper()
	s.play.probe.reset()
	pick := func() (misfortune, func()) {
		for _, m := range s.members {
			m.revive()
		}
		m := misfortunes[s.rnd.IntN(len(misfortunes))]
		for s.only != "" && !strings.Contains(s.only, m.name) {
			m = misfortunes[s.rnd.IntN(len(misfortunes))]
		}
		mend := m.happen(s)
		if mend == nil {
			return m, nil
		}
		if s.struck && m.name != "switchover" {
			m.name += " (primary)"
		}
		did[m.name]++
		lasts := []int{50, 200, 700, 1500, 2500, 5000}
		if _, long := os.LookupEnv("GOTYCOON_CLUSTER"); !long {
			lasts = lasts[:4]
		}
		wait(t.Context(), ms(lasts[s.rnd.IntN(len(lasts))]))
		return m, mend
	}
	first, mend := pick()
	alone := s.rnd.IntN(3) > 0
	if !alone {
		if _, mend := pick(); mend != nil {
			mend()
		}
	}
	if mend != nil {
		mend()
	}
	mended := time.Now()
	s.play.serves(t, s.members...)
	if took := time.Since(mended); took > suspicious {
		s.tell(fmt.Sprintf("for %v after the end of a misfortune (%s) nobody took an update", took, first.name))
	}
	if alone && mend != nil {
		f.add(first.name, s.play.probe.gap())
	}
	wait(t.Context(), ms(s.rnd.IntN(600)))
}
