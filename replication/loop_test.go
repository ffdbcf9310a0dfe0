package replication_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/replication"
	"gotycoon/ulog"
)

// requireEachOnce fails unless the log of a node has n updates, each once.
func requireEachOnce(t *testing.T, n *node, count int) {
	t.Helper()
	lines := n.logged()
	require.Len(t, lines, count)
	slices.Sort(lines)
	require.Len(t, slices.Compact(lines), count, "each update once")
}

// settled waits until what is in the logs has gone round.
func settled(t *testing.T, followers map[*replication.Follower]*node) {
	t.Helper()
	for range 3 {
		for f, of := range followers {
			caughtUp(t, f, of)
		}
	}
}

func TestRingOfThree(t *testing.T) {
	a, b, c := newNode(t, 1), newNode(t, 2), newNode(t, 3)
	ofB, _ := b.follow(master(a.port))
	ofC, _ := c.follow(master(b.port))
	ofA, _ := a.follow(master(c.port))
	for i := range 50 {
		for _, n := range []*node{a, b, c} {
			n.set(i%2, fmt.Sprint(n.sid, " ", i), "x")
		}
	}
	for _, n := range []*node{a, b, c} {
		eventually(t, "every update", func() bool { return len(n.logged()) >= 150 })
	}
	settled(t, map[*replication.Follower]*node{ofB: a, ofC: b, ofA: c})
	for _, n := range []*node{a, b, c} {
		requireEachOnce(t, n, 150)
		require.Equal(t, "x", n.get(1, "2 49"))
	}
}

// The published tutorial replaces a dead dual master by a new server. In the original the updates
// of the dead one go round for ever then.
func TestUpdatesOfADeadMasterDoNotCirculate(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	ofA, endA := a.follow(master(b.port))
	ofB, _ := b.follow(master(a.port))
	for i := range 50 {
		a.set(0, fmt.Sprint("a", i), "x")
		b.set(0, fmt.Sprint("b", i), "y")
	}
	eventually(t, "updates of both", func() bool { return len(a.logged()) == 100 && len(b.logged()) == 100 })
	settled(t, map[*replication.Follower]*node{ofA: b, ofB: a})
	endA()
	a.shut()

	c := newNode(t, 3)
	ofC, _ := c.follow(master(b.port))
	ofB.Tune("127.0.0.1", c.port, nil, nil)
	eventually(t, "what b has", func() bool { return len(c.logged()) == 100 })
	c.set(1, "of c", "z")
	eventually(t, "an update of c", func() bool { return b.get(1, "of c") == "z" })
	b.set(1, "of b", "z")
	eventually(t, "an update of b", func() bool { return c.get(1, "of b") == "z" })
	settled(t, map[*replication.Follower]*node{ofC: b, ofB: c})
	requireEachOnce(t, b, 102)
	requireEachOnce(t, c, 102)
	require.Positive(t, ofB.Status().Dropped)
}

// A server goes over from a dead master to another of its slaves: what that has made itself before
// is asked for, what has been here is not stored again.
func TestAnotherMasterOfTheSameUpdates(t *testing.T) {
	a, b, c := newNode(t, 1), newNode(t, 2), newNode(t, 3)
	b.follow(master(a.port))
	ofC, _ := c.follow(master(a.port))
	for i := range 20 {
		a.set(0, fmt.Sprint(i), "x")
	}
	eventually(t, "updates of a", func() bool { return len(b.logged()) == 20 && len(c.logged()) == 20 })
	b.set(1, "early", "1")
	ofC.Tune("127.0.0.1", b.port, new(ulog.Stamp(0)), nil)
	eventually(t, "the log of b", func() bool { return c.get(1, "early") == "1" })
	caughtUp(t, ofC, b)
	require.Len(t, c.logged(), 41, "a position that was set by hand counts: all comes again")
	ofC.Tune("127.0.0.1", a.port, nil, nil)
	parted(t, ofC) // a lacks what b has made
	ofA, endA := a.follow(master(b.port))
	caughtUp(t, ofA, b)
	endA()
	ofC.Tune("127.0.0.1", a.port, nil, nil)
	eventually(t, "the log of a", func() bool { return ofC.Status().State == replication.Streaming })
	b.set(1, "later", "1") // c does not hear of it
	a.set(0, "new", "1")
	eventually(t, "the update of a", func() bool { return c.get(0, "new") == "1" && b.get(0, "new") == "1" })
	caughtUp(t, ofC, a)
	ofC.Tune("127.0.0.1", b.port, nil, nil)
	eventually(t, "the update of b", func() bool { return c.get(1, "later") == "1" })
	caughtUp(t, ofC, b)
	require.Len(t, c.logged(), 43, "the new one of a and the later one of b")
}
