package replication_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/record"
	"gotycoon/replication"
)

// backup ends a node, keeps a copy of all it has, and starts it again. restore puts the copy back
// in its place while the node is down.
func (n *node) backup() (restore func()) {
	n.t.Helper()
	kept := filepath.Join(n.t.TempDir(), "kept")
	n.shut()
	require.NoError(n.t, n.catalog.Close())
	require.NoError(n.t, os.CopyFS(kept, os.DirFS(n.dir)))
	n.start()
	return func() {
		n.t.Helper()
		n.shut()
		require.NoError(n.t, n.catalog.Close())
		require.NoError(n.t, os.RemoveAll(n.dir))
		require.NoError(n.t, os.CopyFS(n.dir, os.DirFS(kept)))
		n.start()
	}
}

// newFileNode starts a node whose databases are beside its log.
func newFileNode(t *testing.T, sid uint16, parameters string) *node {
	t.Helper()
	n := &node{sid: sid}
	n.t, n.dir, n.timeout = t, t.TempDir(), patience
	n.exprs = []string{filepath.Join(n.dir, "a.kct") + parameters}
	n.start()
	t.Cleanup(func() {
		n.shut()
		require.NoError(t, n.catalog.Close())
	})
	return n
}

func parted(t *testing.T, f *replication.Follower) {
	t.Helper()
	eventually(t, "the state", func() bool { return f.Status().State == replication.Parted })
	at := f.Master()
	require.Contains(t, f.Status().Trouble, fmt.Sprintf("'ktremotemgr tunerepl -mport %d -copy %s'", at.Port, at.Host), "as it can be run")
}

// A master that was restored to the past, and has gone on from there, is not followed as if nothing
// had happened, even when its log ends behind all that the follower has. Nothing here changes until
// somebody says whose data count.
func TestAMasterThatWasRestoredToThePast(t *testing.T) {
	for _, online := range []bool{true, false} {
		t.Run(fmt.Sprintf("followed meanwhile %v", online), func(t *testing.T) {
			a, b := newFileNode(t, 1, ""), newFileNode(t, 2, "")
			f, end := b.follow(master(a.port))
			a.set(0, "before", "1")
			caughtUp(t, f, a)
			restore := a.backup()
			a.set(0, "lost", "1")
			a.set(0, "changed", "1")
			caughtUp(t, f, a)
			if !online {
				end()
				require.NoError(t, b.restart())
			}
			restore()
			a.set(0, "changed", "2")
			a.set(0, "new", "1")
			if !online {
				f, end = b.follow(master(a.port))
			}
			parted(t, f)
			require.Equal(t, "1", b.get(0, "lost"))
			require.Equal(t, "1", b.get(0, "changed"))
			require.Empty(t, b.get(0, "new"))
			require.Contains(t, strings.Join(b.log.lines("ERROR"), "\n"), "the master has lost updates that this server has from it")

			end()
			require.NoError(t, b.restart())
			f, _ = b.follow(master(a.port))
			parted(t, f) // a restart decides nothing
			f.Recopy()
			f.Tune("127.0.0.1", a.port, nil, nil)
			eventually(t, "the copy", func() bool { return f.Status().State == replication.Streaming && b.get(0, "new") != "" })
			a.set(0, "after", "1")
			eventually(t, "an update", func() bool { return b.get(0, "after") != "" })
			requireEqualContents(t, a, b)
			caughtUp(t, f, a)
			a.cut()
			a.set(0, "once more", "1")
			eventually(t, "the next connection", func() bool { return b.get(0, "once more") != "" })
		})
	}
}

// Who wants to keep what is here, and what the master does from now on, says from when.
func TestGoingOnWithAMasterThatHasGoneBack(t *testing.T) {
	a, b := newFileNode(t, 1, ""), newFileNode(t, 2, "")
	f, _ := b.follow(master(a.port))
	restore := a.backup()
	a.set(0, "lost", "1")
	caughtUp(t, f, a)
	restore()
	parted(t, f)
	now := a.catalog.Log().Last()
	f.Tune("127.0.0.1", a.port, &now, nil)
	a.set(0, "new", "1")
	eventually(t, "an update", func() bool { return b.get(0, "new") != "" })
	require.Equal(t, "1", b.get(0, "lost"))
}

// A master that comes back with an empty disk does not empty its followers.
func TestAMasterThatComesBackWithAnotherLog(t *testing.T) {
	a, b := newNode(t, 1, ":"), newNode(t, 2, "%")
	f, _ := b.follow(master(a.port))
	for i := range 10 {
		a.set(0, fmt.Sprint(i), "1")
	}
	caughtUp(t, f, a)
	a.shut()
	require.NoError(t, a.catalog.Close())
	require.NoError(t, os.RemoveAll(filepath.Join(a.dir, "ulog")))
	a.start()
	a.set(0, "new", "1")
	parted(t, f)
	require.Contains(t, f.Status().Trouble, "server 1 has another update log")
	require.Len(t, b.contents(0), 10)

	c := newNode(t, 3, "%") // another server, as an operator wants it
	f.Tune("127.0.0.1", c.port, new(c.catalog.Log().Last()), nil)
	c.set(0, "theirs", "1")
	eventually(t, "an update", func() bool { return b.get(0, "theirs") != "" })
	require.Len(t, b.contents(0), 11)
}

// With versions on both sides copies lose nothing that is newer, so two masters become equal again:
// the one that was restored needs a copy of the other one too, which it is told to fetch.
func TestADualMasterThatWasRestoredToThePast(t *testing.T) {
	a, b := newFileNode(t, 1, "#lww=true"), newFileNode(t, 2, "#lww=true")
	_, end := a.follow(master(b.port))
	ofB, _ := b.follow(master(a.port))
	a.set(0, "before", "a")
	caughtUp(t, ofB, a)
	end()
	restore := a.backup()
	a.set(0, "lost", "a")
	require.NoError(t, a.catalog.DB(0).Remove(nil, []byte("before")))
	caughtUp(t, ofB, a)
	b.set(0, "made here", "b")
	restore()
	a.set(0, "new", "a")
	eventually(t, "the copy", func() bool { return b.get(0, "new") != "" && ofB.Status().State == replication.Streaming })
	require.Contains(t, strings.Join(b.log.lines("ERROR"), "\n"), "Fetching copies of its databases, of which the newer records count")
	require.Equal(t, []string{"a", "b", ""}, []string{b.get(0, "lost"), b.get(0, "made here"), b.get(0, "before")})

	ofA, _ := a.follow(master(b.port))
	eventually(t, "what the other one has made", func() bool { return a.get(0, "made here") != "" })
	ofA.Recopy()
	ofA.Tune("127.0.0.1", b.port, nil, nil)
	eventually(t, "what was lost", func() bool { return a.get(0, "lost") != "" && a.get(0, "before") == "" })
	b.set(0, "after", "b")
	eventually(t, "an update", func() bool { return a.get(0, "after") != "" })
	requireEqualContents(t, a, b)
	a.set(0, "to the other side", "a")
	eventually(t, "an update", func() bool { return b.get(0, "to the other side") != "" })
	requireEqualContents(t, a, b)
}

// The update that was received last may have been removed from the log together with everything
// before it. That is no gap.
func TestTheLastUpdateIsTrimmed(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	f, end := b.follow(master(a.port))
	a.set(0, "k", strings.Repeat("x", 20<<10))
	caughtUp(t, f, a)
	end()
	a.tick() // begins a segment
	require.NoError(t, a.catalog.Log().RemoveFiles(1<<62))
	logged := len(b.logged())
	f, _ = b.follow(master(a.port))
	a.set(0, "k", "2")
	eventually(t, "the update", func() bool { return b.get(0, "k") == "2" })
	caughtUp(t, f, a)
	require.Len(t, b.logged(), logged+1, "no copy")
}

// The update that is asked for once more is not stored twice.
func TestTheLastUpdateIsStoredOnce(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	f, _ := b.follow(master(a.port))
	for i := range 5 {
		require.NoError(t, a.catalog.DB(0).Set(nil, []byte("k"), fmt.Append(nil, i), record.Never))
		caughtUp(t, f, a)
		a.cut()
	}
	a.set(1, "end", "1")
	eventually(t, "the end", func() bool { return b.get(1, "end") != "" })
	caughtUp(t, f, a)
	require.Len(t, b.logged(), 6)
	require.Empty(t, b.log.lines("ERROR"))
}

// The log of a master whose follower makes all the updates has segments with nothing for the
// follower. When the update that the follower received last is removed in front of them, nothing is
// missing, and nobody is told of a gap.
func TestTheLastUpdateIsTrimmedAndOthersFollow(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	ofA, _ := a.follow(master(b.port))
	ofB, _ := b.follow(master(a.port))
	a.set(0, "made by a", "1")
	caughtUp(t, ofB, a)
	for i := range 5 {
		b.set(0, "made by b", strings.Repeat(fmt.Sprint(i), 20<<10))
		caughtUp(t, ofA, b)
	}
	caughtUp(t, ofB, a)
	a.forget()
	for i := range 3 {
		a.cut()
		b.set(0, "k", fmt.Sprint(i))
		caughtUp(t, ofA, b)
		a.set(0, "k of a", fmt.Sprint(i))
		eventually(t, "the update", func() bool { return b.get(0, "k of a") == fmt.Sprint(i) })
	}
	require.Empty(t, a.log.lines("ERROR"))
	require.Empty(t, b.log.lines("ERROR"))
}

// A follower that gets another server ID takes the place of a server whose updates it had from its
// master. Those do not come any more.
func TestAFollowerTakesTheIDOfAServerThatWasLost(t *testing.T) {
	a, b, c := newFileNode(t, 1, ""), newFileNode(t, 2, ""), newFileNode(t, 3, "")
	ofA, endA := a.follow(master(c.port))
	ofB, endB := b.follow(master(a.port))
	c.set(0, "made by c", "1")
	caughtUp(t, ofA, c)
	caughtUp(t, ofB, a)
	endA()
	endB()
	b.sid = 3
	require.NoError(t, b.restart())
	ofB, _ = b.follow(master(a.port))
	a.set(0, "new", "1")
	eventually(t, "an update", func() bool { return b.get(0, "new") != "" })
	caughtUp(t, ofB, a)
	require.Empty(t, b.log.lines("ERROR"))
}

// A master that was left for another one, and is followed again before the copies of the other one
// are complete, is the same as before.
func TestAMasterIsFollowedAgainBeforeCopiesOfAnotherAreComplete(t *testing.T) {
	a, b, c := newNode(t, 1), newNode(t, 2), newNode(t, 3)
	f, _ := b.follow(master(a.port))
	a.set(0, "before", "1")
	caughtUp(t, f, a)
	c.fillAndForget(2000)
	c.set(0, "large", strings.Repeat("x", 100<<10))
	way := newCutter(t, c.port, func() int64 { return 4 << 10 })
	f.Recopy() // c knows nothing of what b has from a
	f.Tune("127.0.0.1", way.port, nil, nil)
	eventually(t, "a copy to begin", func() bool { return f.Status().State == replication.Copying })
	f.Tune("127.0.0.1", a.port, nil, nil)
	a.set(0, "after", "1")
	eventually(t, "an update", func() bool { return b.get(0, "after") != "" })
	requireEqualContents(t, a, b)
	require.NotContains(t, strings.Join(b.log.lines("ERROR"), "\n"), "another update log")
}

// A full copy counts as received: a master that is restored to a moment before the copy, and goes
// on from there, is noticed at the next connection, also when nothing has come after the copy.
func TestAMasterThatWasRestoredToBeforeTheCopy(t *testing.T) {
	for _, tc := range []struct {
		name string
		goOn bool // the master's log ends behind the copy again
	}{{"and has done nothing since", false}, {"and has gone on", true}} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := newFileNode(t, 1, ""), newFileNode(t, 2, "")
			a.set(0, "before", strings.Repeat("1", 20<<10))
			a.tick() // begins a segment
			restore := a.backup()
			require.NoError(t, a.catalog.Log().RemoveFiles(1<<62))
			a.set(0, "lost", "1")
			f, end := b.follow(master(a.port))
			eventually(t, "the copy", func() bool { return f.Status().State == replication.Streaming && b.get(0, "lost") != "" })
			require.Contains(t, strings.Join(b.log.lines("INFO"), "\n"), "fetching a copy")
			a.cut()
			eventually(t, "the next connection", func() bool { return f.Status().State == replication.Streaming })
			caughtUp(t, f, a)
			require.Empty(t, b.log.lines("ERROR")[1:], "but that of the gap")
			end()
			require.NoError(t, b.restart())
			restore()
			if tc.goOn {
				a.set(0, "new", "1")
			}
			f, _ = b.follow(master(a.port))
			parted(t, f)
			require.Equal(t, "1", b.get(0, "lost"))
			require.Empty(t, b.get(0, "new"))
		})
	}
}
