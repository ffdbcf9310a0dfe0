package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/cluster/election"
)

// The model is a cluster without a network and without disks: members with logs, a primary that
// appends, followers that take one update at a time. Seals, takeovers and rewinds use the functions
// of the package. Whatever happens in whatever order, an update that was acknowledged stays in the
// data of every later primary, and members that have followed have equal data.

type modelUpdate struct {
	log, stamp uint64 // where it was made
	here       uint64 // stamp in this log
	id         int
}

type modelMember struct {
	name    string
	sid     uint16
	key     uint64
	log     []modelUpdate
	marks   map[uint64]uint64
	data    []int // the updates that the databases have, in their order
	skew    uint64
	alive   bool
	sealed  uint64
	follows *modelMember // nil: it waits
	term    uint64       // of follows, or that it leads
	at      uint64       // position in the log of follows
	had     func(log, stamp uint64) bool
	leads   bool

	base, baseFrom, baseOwn uint64
	begun                   uint64
}

type model struct {
	t       *testing.T
	rng     *rand.Rand
	state   election.State
	members []*modelMember
	term    uint64
	clock   uint64
	ids     int
	acked   []int
}

func (m *modelMember) last() uint64 {
	if len(m.log) == 0 {
		return 0
	}
	return m.log[len(m.log)-1].here
}

func (m *model) stamp(at *modelMember, least uint64) uint64 {
	m.clock++
	return max(m.clock+at.skew, at.last()+1, least+1)
}

func (m *model) inventory(x *modelMember) Inventory {
	marks := map[uint64]uint64{}
	for k, v := range x.marks {
		marks[k] = v
	}
	return Inventory{SID: x.sid, Marks: Marks{Log: x.key, Last: x.last(), Newest: x.last(), Begun: x.begun, Marks: marks}, Empty: len(x.data) == 0,
		Base: x.base, BaseFrom: x.baseFrom, BaseOwn: x.baseOwn}
}

// write appends an update on a primary.
func (m *model) write(p *modelMember) {
	m.ids++
	s := m.stamp(p, 0)
	p.log = append(p.log, modelUpdate{p.key, s, s, m.ids})
	p.data = append(p.data, m.ids)
}

// pull has a follower take the next update.
func (m *model) pull(f *modelMember) {
	p := f.follows
	if !p.alive || !p.leads || p.term != f.term {
		return // a stream belongs to a term
	}
	for _, u := range p.log {
		if u.here <= f.at {
			continue
		}
		f.at = u.here
		if u.log == f.key || u.stamp <= f.marks[u.log] || f.had != nil && f.had(u.log, u.stamp) {
			return
		}
		f.log = append(f.log, modelUpdate{u.log, u.stamp, m.stamp(f, u.stamp), u.id})
		require.NotZero(m.t, u.id, "the difference that a copy made came to another member")
		f.marks[u.log] = u.stamp
		f.data = append(f.data, u.id)
		return
	}
}

// acknowledge notes which updates of a primary have been acknowledged by now. Whoever waited for an
// update of an earlier term was told of its end.
func (m *model) acknowledge(p *modelMember) {
	for _, u := range p.log {
		n := 0
		for _, f := range m.members {
			if f.alive && f.follows == p && f.term == p.term && f.at >= u.here {
				n++
			}
		}
		if n >= m.state.Required && u.log == p.key && u.stamp >= m.state.Start && p.term == m.state.Term && !slices.Contains(m.acked, u.id) {
			m.acked = append(m.acked, u.id)
		}
	}
}

// takeOver is a leadership that a member has won, with the members that it reaches.
func (m *model) takeOver(l *modelMember) {
	m.term++
	var all []sealed
	for _, x := range m.members {
		s := sealed{member: election.Member{Name: x.name}}
		if !x.alive || x != l && m.rng.IntN(4) == 0 {
			s.err = errAway
		} else {
			x.sealed, x.leads, x.follows = m.term, false, nil
			s.has = m.inventory(x)
			s.at = history(m.state.History).locate(x.name, s.has.Marks)
		}
		all = append(all, s)
	}
	best, err := choose(m.state, all, l.name)
	if err != nil || best.member.Name != l.name {
		return
	}
	m.state = appoint(m.state, m.term, best, all, m.state.Required)
	if m.rng.IntN(10) == 0 {
		return // it loses the leadership before it begins
	}
	m.write(l)
	if m.rng.IntN(10) == 0 {
		l.alive = false // it dies before it notes that it has begun
		return
	}
	l.leads, l.term, l.begun = true, m.term, m.term
	for _, id := range m.acked {
		require.Contains(m.t, l.data, id, "an acknowledged update is missing on the primary of term %d", m.term)
	}
}

// follow has a member follow the primary of the state.
func (m *model) follow(x *modelMember) {
	p := m.find(m.state.Primary)
	if m.state.Term < x.sealed || p == nil || x == p || !p.alive || x.term == m.state.Term && x.follows != nil {
		return
	}
	if !p.leads || p.term != m.state.Term {
		return // neither its stream nor a copy of it counts
	}
	h := history(m.state.History)
	at := h.locate(x.name, m.inventory(x).Marks)
	x.follows, x.term, x.leads = p, m.state.Term, false
	b := h.branch(at)
	x.had = nil
	after, may := h.unnoted(x.name, m.inventory(x).Marks, at)
	switch {
	case may && m.lone(x, after, h.lostOf(x.key)) > 0:
	case at.Term == m.state.Term:
		x.at = at.Stamp
		return
	case at.Term == 0 && len(x.data) == 0:
	case b.Known && b.Clean && at.Term != 0:
		if from, ok := h.from(at); ok {
			x.at, x.had = from, h.had(at)
			return
		}
	default:
		n := m.lone(x, b.At.Stamp, h.lost())
		has := m.inventory(x)
		if from, ok := h.from(b.At); ok && n == 0 && b.Known && b.At.Term != 0 && !h.copiedBehind(&has, b.At) {
			x.at, x.had = from, h.had(b.At)
			return
		}
	}
	x.data = slices.Clone(p.data)
	x.at = p.last()
	x.marks[p.key] = p.last()
	x.log = append(x.log, modelUpdate{^p.key, 1, m.stamp(x, p.last()), 0})
	x.base, x.baseFrom, x.baseOwn = p.key, p.last(), x.last()
}

// lone returns how many updates of a member's log behind a stamp are put aside.
func (m *model) lone(x *modelMember, after uint64, lost func(log, stamp uint64) bool) (n int) {
	for _, u := range x.log {
		if u.here > after && lost(u.log, u.stamp) {
			n++
			require.NotContains(m.t, m.acked, u.id)
		}
	}
	return n
}

func (m *model) find(name string) *modelMember {
	for _, x := range m.members {
		if x.name == name {
			return x
		}
	}
	return nil
}

func newModel(t *testing.T, rng *rand.Rand, n, required int) *model {
	m := &model{t: t, rng: rng}
	m.state.Required = required
	for i := range n {
		x := &modelMember{name: fmt.Sprint("m", i), sid: uint16(i + 1), key: uint64(1000 + i), marks: map[uint64]uint64{}, alive: true, skew: rng.Uint64N(50)}
		m.members = append(m.members, x)
		m.state.Members = append(m.state.Members, election.Member{Name: x.name, SID: x.sid})
	}
	return m
}

// step does something at random.
func (m *model) step() {
	x := m.members[m.rng.IntN(len(m.members))]
	switch n := m.rng.IntN(100); {
	case !x.alive:
		x.alive = n < 10 || x.alive
	case x.leads && n < 50:
		m.write(x)
		m.acknowledge(x)
	case x.follows != nil && n < 70:
		m.pull(x)
		if p := x.follows; p.leads && p.alive && p.term == x.term {
			m.acknowledge(p)
		}
	case n < 90:
		m.follow(x)
	case n < 93:
		x.alive, x.follows, x.leads = false, nil, false
	case n < 97:
		m.takeOver(x)
	}
}

func TestNothingAcknowledgedIsLostInTheModel(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 50
	}
	acked := 0
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 15))
		n := 2 + rng.IntN(4)
		m := newModel(t, rng, n, rng.IntN(n/2+1))
		for range 1500 {
			m.step()
		}
		acked += len(m.acked)
		m.settle(seed)
	}
	require.Greater(t, acked, 30*rounds)
}

// settle lets everybody live, elects once more, and compares all data.
func (m *model) settle(seed uint64) {
	for _, x := range m.members {
		x.alive = true
	}
	for range 200 {
		for _, x := range m.members {
			m.follow(x)
			if x.follows != nil {
				m.pull(x)
			}
		}
	}
	for tries := 0; ; tries++ {
		require.Less(m.t, tries, 200, "no primary with seed %d", seed)
		l := m.members[m.rng.IntN(len(m.members))]
		l.alive = true
		if m.takeOver(l); l.leads {
			break
		}
	}
	for _, x := range m.members {
		x.alive = true
	}
	p := m.find(m.state.Primary)
	for range 5000 {
		for _, x := range m.members {
			m.follow(x)
			if x.follows != nil {
				m.pull(x)
			}
		}
	}
	for _, x := range m.members {
		require.Equal(m.t, p.data, x.data, "member %s with seed %d", x.name, seed)
	}
	for _, id := range m.acked {
		require.Contains(m.t, p.data, id)
	}
}
