package election

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// seeds returns the seeds of the random tests: GOTYCOON_ELECTIONS=2000 for more than a few,
// GOTYCOON_ELECTION_SEED=7 for one.
func seeds(t *testing.T, few int) []uint64 {
	if one := os.Getenv("GOTYCOON_ELECTION_SEED"); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		require.NoError(t, err)
		return []uint64{seed}
	}
	if more := os.Getenv("GOTYCOON_ELECTIONS"); more != "" {
		n, err := strconv.Atoi(more)
		require.NoError(t, err)
		few = n
	}
	first := uint64(time.Now().UnixNano()) & 0xFFFFFF
	all := make([]uint64, few)
	for i := range all {
		all[i] = first + uint64(i)
	}
	return all
}

func TestALeaderIsElectedAndHasALease(t *testing.T) {
	w := newWorld(t, 1)
	w.cluster("a", "b", "c")
	n := w.mustLead()
	require.Less(t, w.now, 4*time.Second)
	name, term, known := n.r.Leader()
	require.True(t, known)
	require.Equal(t, n.name, name)
	got, ok := n.r.Leading()
	require.True(t, ok)
	require.Equal(t, term, got)
	w.run(10 * time.Second)
	require.Same(t, n, w.leader(), "nothing happened, so nobody else leads")
	again, _ := n.r.Leading()
	require.Equal(t, term, again)
	for _, m := range w.nodes {
		name, _, _ := m.r.Leader()
		require.Equal(t, n.name, name)
	}
}

// Half of the failovers take less than 3 s from the death of the leader to the lease of the next.
func TestFailoverTimes(t *testing.T) {
	var total time.Duration
	const rounds = 30
	for seed := range uint64(rounds) {
		w := newWorld(t, seed)
		w.cluster("a", "b", "c")
		n := w.mustLead()
		w.mustPropose()
		n.kill()
		died := w.now
		next := w.mustLead()
		require.NotSame(t, n, next)
		total += w.now - died
		require.Less(t, w.now-died, 10*time.Second)
	}
	t.Logf("mean %v", total/rounds)
	require.Less(t, total/rounds, 2500*time.Millisecond)
}

// TestRandomWorlds lets servers be killed, lose power, stand still and lose each other at random,
// while States are proposed and leadership and membership change. The world checks after every
// event; here is checked that the cluster recovers with everything that was acknowledged.
func TestRandomWorlds(t *testing.T) {
	for _, seed := range seeds(t, 25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomWorld(t, seed) })
	}
}

func randomWorld(t *testing.T, seed uint64) {
	w := newWorld(t, seed)
	sizes := [][]string{{"a"}, {"a", "b"}, {"a", "b", "c"}, {"a", "b", "w"}, {"a", "b", "c", "d", "e"}}
	names := sizes[w.rnd.IntN(len(sizes))]
	w.cluster(names...)
	for _, name := range w.names() {
		n := w.nodes[name]
		n.kill()
		n.rate = 0.97 + 0.05*w.rnd.Float64() // up to 5 % apart
		n.start()
	}
	w.delay = time.Duration(1+w.rnd.IntN(200)) * time.Millisecond
	if w.rnd.IntN(2) == 0 {
		w.loss = 0.1 * w.rnd.Float64()
	}
	for range 60 {
		w.disturb()
		w.run(time.Duration(w.rnd.IntN(2500)) * time.Millisecond)
	}
	w.settle()
	w.converge()
}

// disturb does one thing that may happen to a cluster.
func (w *world) disturb() {
	names := w.names()
	n := w.nodes[names[w.rnd.IntN(len(names))]]
	switch w.rnd.IntN(13) {
	case 0, 1:
		if n.r != nil {
			n.kill()
		}
	case 2:
		if n.r != nil {
			n.cutPower()
		}
	case 3:
		if n.r != nil {
			n.fs.CutAfter(1 + w.rnd.IntN(10)) // in the middle of a write
		}
	case 4, 5:
		if n.r != nil && !n.paused {
			n.pause()
		}
	case 6:
		w.isolate(n.name, w.rnd.IntN(3) > 0, w.rnd.IntN(3) > 0)
	case 7:
		w.heal()
	case 8:
		if l := w.leader(); l != nil && l != n {
			_ = l.transfer(n.name) // a refusal is an answer too
		}
	case 9:
		w.wake()
	case 10:
		w.changeMembers(n)
	default:
		for range w.rnd.IntN(5) {
			if l := w.leader(); l != nil {
				l.propose()
			}
		}
	}
}

// changeMembers adds a server or removes one. A server is removed once: another one that is added
// later has another name.
func (w *world) changeMembers(n *simNode) {
	l := w.leader()
	if l == nil || l == n {
		return
	}
	if members := l.r.State().Members; len(members) > 5 || len(members) > 2 && w.rnd.IntN(2) == 0 {
		l.change(removing(n.name))
		return
	}
	name := fmt.Sprintf("x%d", len(w.nodes))
	w.server(name, nil).start()
	l.change(adding(Member{Name: name, Addr: name + ":1978"}))
}

// wake brings all servers back.
func (w *world) wake() {
	for _, name := range w.names() {
		n := w.nodes[name]
		n.fs.CutAfter(0)
		if n.r != nil && n.r.Err() != nil {
			n.cutPower()
		}
		if n.r == nil {
			n.start()
		}
		if n.paused {
			n.resume()
		}
	}
}

// settle ends all disturbances.
func (w *world) settle() {
	w.wake()
	w.heal()
	w.loss, w.delay = 0, 5*time.Millisecond
}
