package replication_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/record"
	"gotycoon/replication"
	"gotycoon/ulog"
)

func newDual(t *testing.T, sid uint16) *node {
	return newNode(t, sid, filepath.Join(t.TempDir(), "a.kct#lww=true"))
}

func (n *node) remove(key string) {
	n.t.Helper()
	require.NoError(n.t, n.catalog.DB(0).Remove(nil, []byte(key)))
}

func equalSoon(t *testing.T, a, b *node) {
	t.Helper()
	eventually(t, "equal contents", func() bool { return maps.Equal(a.contents(0), b.contents(0)) })
}

// later returns when what is updated next is newer than all that there is: stamps of different
// servers do not tell updates within a millisecond apart.
func later(t *testing.T, nodes ...*node) {
	t.Helper()
	eventually(t, "the next millisecond", func() bool {
		for _, n := range nodes {
			if n.catalog.Log().Last() >= ulog.StampAt(time.Now()) {
				return false
			}
		}
		return true
	})
}

// Two servers follow each other and are cut off. One forgets its log meanwhile, so the other needs
// a copy: nothing that is newer gets lost by it, on either side.
func TestACopyLosesNothingThatIsNewer(t *testing.T) {
	a, b := newDual(t, 1), newDual(t, 2)
	fa, endA := a.follow(master(b.port))
	fb, endB := b.follow(master(a.port))
	for i := range 100 {
		a.set(0, fmt.Sprintf("shared %02d", i), "first")
	}
	a.set(0, "zz", "to be cleared")
	equalSoon(t, a, b)
	caughtUp(t, fb, a)
	caughtUp(t, fa, b)
	endA()
	endB()
	want := map[string]string{}
	for i := range 100 {
		key := fmt.Sprintf("shared %02d", i)
		last, first := a, b
		if i%2 == 0 {
			last, first = b, a
		}
		switch i % 10 {
		case 0, 1:
			first.set(0, key, "loses")
			later(t, a, b)
			last.set(0, key, "wins")
			want[key] = "wins"
		case 2, 3:
			first.remove(key)
			later(t, a, b)
			last.set(0, key, "wins")
			want[key] = "wins"
		case 4, 5:
			first.set(0, key, "loses")
			later(t, a, b)
			last.remove(key)
		case 6, 7:
			last.remove(key)
		default:
			want[key] = "first"
		}
	}
	b.set(0, "new at b", "b")
	require.NoError(t, b.catalog.DB(0).Set(nil, []byte("mortal"), []byte("b"), 1000))
	a.fillAndForget(3000)
	maps.Copy(want, a.contents(0))
	for key := range want {
		if strings.HasPrefix(key, "shared") && b.get(0, key) == "wins" {
			want[key] = "wins"
		}
	}
	for i := range 100 { // what b has removed last
		if key := fmt.Sprintf("shared %02d", i); i%10 == 4 || i%10 == 6 {
			delete(want, key)
		}
	}
	want["new at b"], want["mortal"] = "b", "b"

	fb, _ = b.follow(master(a.port))
	a.follow(master(b.port))
	eventually(t, "the copy", func() bool { return fb.Status().State == replication.Streaming && b.get(0, "key 02999") != "" })
	require.Contains(t, strings.Join(b.log.lines("INFO"), "\n"), "fetching a copy")
	a.set(0, "live", "a")
	b.set(0, "live too", "b")
	want["live"], want["live too"] = "a", "b"
	eventually(t, "the end at a", func() bool { return a.get(0, "live too") != "" })
	eventually(t, "the end at b", func() bool { return b.get(0, "live") != "" })
	equalSoon(t, a, b)
	require.Equal(t, want, a.contents(0))
	_, xt, err := a.catalog.DB(0).Get(nil, nil, []byte("mortal"))
	require.NoError(t, err)
	require.Less(t, xt, int64(record.MaxXT))

	c, d := newDual(t, 3), newNode(t, 4, ":") // followers of the one that has been given the copy
	c.follow(master(b.port))
	d.follow(master(b.port))
	equalSoon(t, a, c)
	equalSoon(t, a, d)
	require.Less(t, len(b.logged()), 2*(len(want)+200), "nothing goes round")
}

// What the master has removed so long ago that it does not know any more is removed if the master
// had made it.
func TestACopyRemovesWhatTheMasterHasForgotten(t *testing.T) {
	a, b := newDual(t, 1), newDual(t, 2)
	a.removals = 10
	require.NoError(t, a.restart())
	f, end := b.follow(master(a.port))
	for i := range 100 {
		a.set(0, fmt.Sprint("a ", i), "x")
	}
	caughtUp(t, f, a)
	eventually(t, "all", func() bool { return len(b.contents(0)) == 100 })
	end()
	b.set(0, "b", "x")
	for i := range 90 {
		a.remove(fmt.Sprint("a ", i))
	}
	a.set(0, "newer", "x")
	require.NoError(t, a.restart()) // with a checkpoint
	a.forget()
	a.fillAndForget(3000)
	f, _ = b.follow(master(a.port))
	eventually(t, "the copy", func() bool { return f.Status().State == replication.Streaming && b.get(0, "key 02999") != "" })
	want := a.contents(0)
	want["b"] = "x"
	require.Equal(t, want, b.contents(0))
}

// A clear that the copy tells of leaves what is newer.
func TestACopyTellsOfTheClear(t *testing.T) {
	a, b := newDual(t, 1), newDual(t, 2)
	f, end := b.follow(master(a.port))
	a.set(0, "cleared", "a")
	caughtUp(t, f, a)
	eventually(t, "the record", func() bool { return b.get(0, "cleared") == "a" })
	end()
	b.set(0, "cleared, too", "b")
	later(t, a, b)
	require.NoError(t, a.catalog.DB(0).Clear(nil))
	later(t, a, b)
	b.set(0, "newer", "b")
	a.fillAndForget(3000)
	b.follow(master(a.port))
	a.follow(master(b.port))
	eventually(t, "the copy", func() bool { return b.get(0, "key 02999") != "" && a.get(0, "newer") != "" })
	require.Empty(t, b.get(0, "cleared"))
	require.Empty(t, b.get(0, "cleared, too"))
	equalSoon(t, a, b)
}
