package election

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const patience = 30 * time.Second

// leader waits for a member with a lease.
func (p *party) leader() *guest {
	p.t.Helper()
	var leader *guest
	p.await("a leader", func() bool {
		leader = p.holder()
		return leader != nil
	})
	return leader
}

// holder returns the member that has a lease, or nil.
func (p *party) holder() *guest {
	for _, g := range p.all() {
		if e := g.elector(); e != nil {
			if term, _ := e.Lease(); term != 0 {
				return g
			}
		}
	}
	return nil
}

// change makes a change as often as somebody else comes to lead.
func (p *party) change(change func(Elector, uint64) error) {
	p.t.Helper()
	p.await("a change", func() bool {
		e := p.leader().elector()
		term, _ := e.Leading()
		err := change(e, term)
		if !errors.Is(err, ErrNotLeading) && !errors.Is(err, ErrUnknown) {
			require.NoError(p.t, err)
		}
		return err == nil
	})
}

func (p *party) await(what string, condition func() bool) {
	p.t.Helper()
	require.Eventually(p.t, condition, patience, 5*time.Millisecond, "waited for %s", what)
}

// add makes Required one more.
func add(s State) (State, error) {
	s.Required++
	return s, nil
}

func (g *guest) propose(ctx context.Context) error {
	e := g.elector()
	if e == nil {
		return ErrNotLeading
	}
	term, _ := e.Leading()
	return e.Propose(ctx, term, add)
}

// mustPropose commits a change, and returns the State that is known to whoever leads then.
func (p *party) mustPropose() State {
	p.t.Helper()
	for {
		ctx, cancel := context.WithTimeout(p.t.Context(), patience)
		g := p.leader()
		err := g.propose(ctx)
		cancel()
		if err == nil {
			return g.elector().State()
		}
		require.True(p.t, errors.Is(err, ErrNotLeading) || errors.Is(err, ErrUnknown), "%v", err)
	}
}

// learn waits until all members that are up know a State, or a newer one.
func (p *party) learn(s State) {
	p.t.Helper()
	p.await("the State", func() bool {
		return !slices.ContainsFunc(p.all(), func(g *guest) bool {
			e := g.elector()
			return e != nil && e.State().Version < s.Version
		})
	})
}

func TestFailover(t *testing.T) {
	parties(t, []string{"a", "b", "c"}, func(t *testing.T, p *party) {
		p.learn(p.mustPropose())
		p.await("all to know who leads", func() bool {
			leader := p.holder()
			return leader != nil && !slices.ContainsFunc(p.all(), func(g *guest) bool {
				name, _, known := g.elector().Leader()
				return !known || name != leader.name
			})
		})
		first := p.leader()
		term, _ := first.elector().Leading()
		state := first.elector().State()
		first.kill()
		second := p.leader()
		require.NotSame(t, first, second)
		next, _ := second.elector().Leading()
		require.Greater(t, next, term)
		require.Equal(t, state, second.elector().State())
		first.start()
		p.learn(p.mustPropose())
	})
}

func TestFormerLeader(t *testing.T) {
	parties(t, []string{"a", "b", "c"}, func(t *testing.T, p *party) {
		first := p.leader()
		term, _ := first.elector().Leading()
		before := p.mustPropose()
		first.pause()
		result := make(chan error, 1)
		go func() { result <- first.elector().Propose(t.Context(), term, add) }()
		p.await("the end of the lease", func() bool { l, _ := first.elector().Lease(); return l == 0 })
		require.NotSame(t, first, p.leader())
		state := p.mustPropose()
		first.resume()
		err := <-result
		if err != nil {
			require.True(t, errors.Is(err, ErrNotLeading) || errors.Is(err, ErrUnknown), "%v", err)
		} else { // it was committed before all went to sleep, and its successor's was another one
			require.GreaterOrEqual(t, state.Required, before.Required+2)
		}
		p.learn(state)
		require.ErrorIs(t, first.elector().Propose(t.Context(), term, add), ErrNotLeading)
	})
}

func TestConcurrentProposals(t *testing.T) {
	parties(t, []string{"a", "b", "c"}, func(t *testing.T, p *party) {
		p.leader()
		var sure, unknown atomic.Int64
		var all sync.WaitGroup
		for _, g := range p.all() {
			for range 2 {
				all.Go(func() {
					for range 20 {
						switch err := g.propose(t.Context()); {
						case err == nil:
							sure.Add(1)
						case errors.Is(err, ErrUnknown):
							unknown.Add(1)
						}
					}
				})
			}
		}
		all.Wait()
		got := int64(p.mustPropose().Required) - 1
		require.GreaterOrEqual(t, got, sure.Load())
		require.LessOrEqual(t, got, sure.Load()+unknown.Load())
		require.Positive(t, sure.Load())
	})
}

func TestChangesThatAreNotMade(t *testing.T) {
	parties(t, []string{"a", "b"}, func(t *testing.T, p *party) {
		broken := errors.New("broken")
		before := p.mustPropose()
		refused := func(want string, change func(Elector, uint64) error) {
			t.Helper()
			p.change(func(e Elector, term uint64) error {
				err := change(e, term)
				if errors.Is(err, ErrNotLeading) {
					return err
				}
				require.ErrorContains(t, err, want)
				return nil
			})
		}
		refused("broken", func(e Elector, term uint64) error {
			return e.Propose(t.Context(), term, func(s State) (State, error) { return s, broken })
		})
		refused("AddMember", func(e Elector, term uint64) error {
			return e.Propose(t.Context(), term, func(s State) (State, error) {
				s.Members = s.Members[:1]
				return s, nil
			})
		})
		refused("already", func(e Elector, term uint64) error {
			return e.AddMember(t.Context(), term, Member{Name: "a"})
		})
		refused("no member", func(e Elector, term uint64) error {
			return e.RemoveMember(t.Context(), term, "x")
		})
		refused("cannot remove itself", func(e Elector, term uint64) error {
			name, _, _ := e.Leader()
			return e.RemoveMember(t.Context(), term, name)
		})
		e := p.leader().elector()
		term, _ := e.Leading()
		require.ErrorIs(t, e.Propose(t.Context(), term+1, add), ErrNotLeading)
		require.Equal(t, before, e.State())
		p.change(func(e Elector, term uint64) error {
			return e.Propose(t.Context(), term, func(s State) (State, error) {
				s.Members[0].Addr = "elsewhere:1"
				return s, nil
			})
		})
		require.Equal(t, "elsewhere:1", p.leader().elector().State().Members[0].Addr)
	})
}

func TestTransfers(t *testing.T) {
	parties(t, []string{"a", "b", "w"}, func(t *testing.T, p *party) {
		for done := 0; done < 3; {
			from := p.leader()
			state := p.mustPropose()
			p.learn(state)
			to := map[string]string{"a": "b", "b": "a"}[from.name]
			for _, bad := range []string{"w", "nobody", from.name} {
				err := from.elector().Transfer(t.Context(), bad)
				require.True(t, errors.Is(err, ErrRefused) || errors.Is(err, ErrNotLeading), "%v", err)
			}
			p.await("a word of "+to, func() bool {
				_, leads := from.elector().Leading()
				return !leads || from.elector().Hears(to)
			})
			if err := from.transfer(t.Context(), to); err != nil {
				t.Logf("the machine is busy: %v", err)
				continue
			}
			done++
			require.Equal(t, state, p.leader().elector().State())
			if _, leads := from.elector().Leading(); !leads {
				require.ErrorIs(t, from.elector().Transfer(t.Context(), to), ErrNotLeading)
			}
		}
	})
}

// transfer hands the leadership over. The leases end with the call.
func (g *guest) transfer(ctx context.Context, to string) error {
	e := g.elector()
	g.mu.Lock()
	g.handing, g.until = true, time.Time{}
	g.mu.Unlock()
	err := e.Transfer(ctx, to)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handing = false
	return err
}

func TestATransferToADeadMemberEnds(t *testing.T) {
	parties(t, []string{"a", "b", "c"}, func(t *testing.T, p *party) {
		from := p.leader()
		term, _ := from.elector().Leading()
		to := map[string]string{"a": "b", "b": "c", "c": "a"}[from.name]
		p.guests[to].kill()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		require.Error(t, from.transfer(ctx, to))
		p.mustPropose()
		if next, _ := p.leader().elector().Leading(); next == term {
			require.Same(t, from, p.leader(), "only a transfer that was refused leaves the term alone")
		}
	})
}

func TestMembersComeAndGo(t *testing.T) {
	parties(t, []string{"a"}, func(t *testing.T, p *party) {
		p.guest("b", nil).start()
		p.guest("c", nil).start()
		for _, name := range []string{"b", "c"} {
			p.change(func(e Elector, term uint64) error {
				if _, known := e.State().Member(name); known {
					return nil // an earlier try of which nobody knew
				}
				return e.AddMember(t.Context(), term, Member{Name: name, Addr: name + ":1978"})
			})
			p.await("the vote of "+name, func() bool {
				m, known := p.leader().elector().State().Member(name)
				return known && !m.Joining
			})
		}
		p.learn(p.mustPropose())
		p.guests["a"].kill()
		p.change(func(e Elector, term uint64) error {
			if _, known := e.State().Member("a"); !known {
				return nil
			}
			return e.RemoveMember(t.Context(), term, "a")
		})
		p.guests["a"].start()
		state := p.mustPropose()
		require.Len(t, state.Members, 2)
		for range 3 {
			require.NotEqual(t, "a", p.leader().name)
			p.mustPropose()
		}
	})
}

func TestAWitnessNeverLeads(t *testing.T) {
	parties(t, []string{"a", "b", "w"}, func(t *testing.T, p *party) {
		for range 3 {
			g := p.leader()
			require.NotEqual(t, "w", g.name)
			p.learn(p.mustPropose())
			g.kill()
			require.NotEqual(t, "w", p.leader().name)
			g.start()
		}
		p.learn(p.mustPropose())
		p.guests["a"].kill()
		p.guests["b"].kill()
		w := p.guests["w"].elector()
		for range 50 {
			_, leads := w.Leading()
			require.False(t, leads)
			<-time.After(10 * time.Millisecond)
		}
	})
}

func TestAllDie(t *testing.T) {
	parties(t, []string{"a", "b", "c"}, func(t *testing.T, p *party) {
		state := p.mustPropose()
		for _, g := range p.all() {
			g.kill()
		}
		for _, g := range p.all() {
			g.start()
		}
		require.Equal(t, state, p.leader().elector().State())
		p.learn(p.mustPropose())
	})
}

// Changed tells everything that is new.
func TestChanged(t *testing.T) {
	parties(t, []string{"a", "b", "c"}, func(t *testing.T, p *party) {
		p.leader()
		want := p.mustPropose()
		for _, g := range p.all() {
			e := g.elector()
			for {
				changed := e.Changed()
				if _, _, known := e.Leader(); known && e.State().Version >= want.Version {
					break
				}
				select {
				case <-changed:
				case <-time.After(patience):
					t.Fatal("nothing changes")
				}
			}
		}
		for _, g := range p.all() {
			e := g.elector()
			changed := e.Changed()
			g.kill()
			select {
			case <-changed:
			case <-time.After(patience):
				t.Fatal("the end is no change")
			}
			require.ErrorIs(t, e.Err(), ErrClosed)
			require.NoError(t, e.Close())
			lease, _ := e.Lease()
			require.Zero(t, lease)
		}
	})
}

// TestStorms lets members of which the clocks differ stand still, die and lose each other at
// random. The party checks the leases all the time; what was acknowledged must be there at the end.
func TestStorms(t *testing.T) {
	parties(t, []string{"a", "b", "c"}, func(t *testing.T, p *party) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		for _, g := range p.all() {
			g.kill()
			g.mu.Lock()
			g.rate = 0.975 + 0.05*rnd.Float64()
			g.mu.Unlock()
			g.start()
		}
		var sure atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, g := range p.all() {
			all.Go(func() {
				for ctx.Err() == nil {
					if g.propose(ctx) == nil {
						sure.Add(1)
					}
					<-time.After(5 * time.Millisecond)
				}
			})
		}
		names := []string{"a", "b", "c"}
		for range 15 {
			p.disturb(rnd, p.guests[names[rnd.IntN(3)]])
			<-time.After(time.Duration(rnd.Int64N(int64(400 * time.Millisecond))))
		}
		stop()
		for _, g := range p.all() {
			g.resume()
		}
		p.heal()
		all.Wait()
		for _, g := range p.all() {
			if g.elector() == nil {
				g.start()
			}
		}
		require.Greater(t, int64(p.mustPropose().Required), sure.Load())
		t.Logf("%d proposals", sure.Load())
	})
}

func (p *party) disturb(rnd *rand.Rand, g *guest) {
	switch rnd.IntN(6) {
	case 0:
		g.kill()
	case 1:
		g.pause()
	case 2:
		p.isolate(g.name, rnd.IntN(2) == 0, rnd.IntN(2) == 0)
	case 3:
		p.heal()
	default:
		for _, g := range p.all() {
			g.resume()
			if g.elector() == nil {
				g.start()
			}
		}
	}
}
