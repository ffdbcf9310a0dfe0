package replication_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/replication"
	"gotycoon/ulog"
)

// awaitParted waits until a follower has parted from its master, for a reason.
func awaitParted(t *testing.T, f *replication.Follower, why string) {
	t.Helper()
	parted(t, f)
	require.Contains(t, f.Status().Trouble, why)
}

// noCopy checks that a node has fetched no copy and complained of nothing.
func (n *node) noCopy() {
	n.t.Helper()
	require.NotContains(n.t, strings.Join(n.log.lines("INFO"), "\n"), "fetching a copy")
	require.Empty(n.t, n.log.lines("ERROR"))
}

// Of two followers of a master one takes its place, and the other follows it without a copy,
// whatever clients have done on it since, also when the new master was started again without one.
func TestAFollowerTakesTheMastersPlace(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("started again %v", restarted), func(t *testing.T) {
			a, b, c := newFileNode(t, 1, ""), newFileNode(t, 2, ""), newFileNode(t, 3, "")
			ofB, endB := b.follow(master(a.port))
			ofC, _ := c.follow(master(a.port))
			for i := range 20 {
				a.set(0, fmt.Sprint(i), "a")
			}
			caughtUp(t, ofB, a)
			caughtUp(t, ofC, a)
			a.shut()
			if restarted {
				endB()
				b.follower.Store(nil)
				require.NoError(t, b.restart())
			} else {
				ofB.Tune("", 0, nil, nil)
			}
			b.set(0, "new", "b")
			ofC.Tune("127.0.0.1", b.port, nil, nil)
			eventually(t, "an update of the new master", func() bool { return c.get(0, "new") == "b" })
			caughtUp(t, ofC, b)
			requireEqualContents(t, b, c)
			c.noCopy()

			// And the next failover, to a server that followed the second master only.
			d := newFileNode(t, 4, "")
			ofD, _ := d.follow(master(b.port))
			b.set(0, "newer", "b")
			caughtUp(t, ofD, b)
			caughtUp(t, ofC, b)
			b.shut()
			ofD.Tune("", 0, nil, nil)
			d.set(0, "newest", "d")
			ofC.Tune("127.0.0.1", d.port, nil, nil)
			eventually(t, "an update of the third master", func() bool { return c.get(0, "newest") == "d" })
			requireEqualContents(t, d, c)
			c.noCopy()
		})
	}
}

// A server that is turned from its master to the master of its master has nothing that the latter
// lacks.
func TestTheMasterOfTheMaster(t *testing.T) {
	a, b, c := newNode(t, 1), newNode(t, 2), newNode(t, 3)
	ofB, _ := b.follow(master(a.port))
	ofC, _ := c.follow(master(b.port))
	a.set(0, "k", "1")
	caughtUp(t, ofB, a)
	caughtUp(t, ofC, b)
	b.shut()
	ofC.Tune("127.0.0.1", a.port, nil, nil)
	a.set(0, "k", "2")
	eventually(t, "the update", func() bool { return c.get(0, "k") == "2" })
	c.noCopy()
}

// A server that never followed the former master does not take its place unnoticed: updates that
// it made before would never come, and what only the follower has would be nowhere else.
func TestAStrangerTakesTheMastersPlace(t *testing.T) {
	a, b, c := newNode(t, 1), newNode(t, 2), newNode(t, 3)
	c.set(0, "theirs", "c")
	f, _ := b.follow(master(a.port))
	a.set(0, "ours", "a")
	caughtUp(t, f, a)
	a.shut()
	f.Tune("127.0.0.1", c.port, nil, nil)
	awaitParted(t, f, "the new master lacks updates that this server has from the former one")
	c.set(0, "new", "c")
	require.Equal(t, []string{"a", "", ""}, []string{b.get(0, "ours"), b.get(0, "theirs"), b.get(0, "new")})
	f.Recopy() // the operator decides
	f.Tune("127.0.0.1", c.port, nil, nil)
	eventually(t, "the copy", func() bool { return b.get(0, "new") != "" && f.Status().State == replication.Streaming })
	requireEqualContents(t, c, b)
}

// The same with versions on both sides: a copy loses nothing, so nobody has to decide.
func TestAStrangerWithVersions(t *testing.T) {
	a, b, c := newFileNode(t, 1, "#lww=true"), newFileNode(t, 2, "#lww=true"), newFileNode(t, 3, "#lww=true")
	c.set(0, "theirs", "c")
	f, _ := b.follow(master(a.port))
	a.set(0, "ours", "a")
	caughtUp(t, f, a)
	a.shut()
	f.Tune("127.0.0.1", c.port, nil, nil)
	eventually(t, "the copy", func() bool { return b.get(0, "theirs") == "c" })
	require.Equal(t, "a", b.get(0, "ours"))
}

// A follower that has nothing yet follows anybody.
func TestAnEmptyFollowerFollowsAnybody(t *testing.T) {
	a, b, c := newNode(t, 1), newNode(t, 2), newNode(t, 3)
	c.set(0, "before", "c")
	f, _ := b.follow(master(a.port))
	caughtUp(t, f, a)
	a.shut()
	f.Tune("127.0.0.1", c.port, nil, nil)
	eventually(t, "what was there before", func() bool { return b.get(0, "before") == "c" })
	b.noCopy()
}

// A new master that is behind is waited for, for a while: it may be about to get what it lacks.
func TestANewMasterIsBehind(t *testing.T) {
	a, b, c := newNode(t, 1), newNode(t, 2), newNode(t, 3)
	b.silence = patience / 3
	ofC, endC := c.follow(master(a.port))
	f, _ := b.follow(master(a.port))
	a.set(0, "k", "1")
	caughtUp(t, f, a)
	caughtUp(t, ofC, a)
	endC()
	a.set(0, "k", "2")
	caughtUp(t, f, a)
	f.Tune("127.0.0.1", c.port, nil, nil)
	eventually(t, "the reason", func() bool { return strings.Contains(f.Status().Trouble, "has not yet received all updates") })
	require.Equal(t, replication.Connecting, f.Status().State)
	ofC, _ = c.follow(master(a.port))
	caughtUp(t, ofC, a)
	ofC.Tune("", 0, nil, nil)
	c.set(0, "k", "3")
	eventually(t, "an update", func() bool { return b.get(0, "k") == "3" })
	b.noCopy()
}

// If it does not get them, the follower does not follow it.
func TestANewMasterStaysBehind(t *testing.T) {
	a, b, c := newNode(t, 1), newNode(t, 2), newNode(t, 3)
	b.silence = 300 * time.Millisecond
	ofC, endC := c.follow(master(a.port))
	f, _ := b.follow(master(a.port))
	a.set(0, "k", "1")
	caughtUp(t, f, a)
	caughtUp(t, ofC, a)
	endC()
	a.set(0, "k", "2")
	caughtUp(t, f, a)
	a.shut()
	c.set(0, "new", "c")
	f.Tune("127.0.0.1", c.port, nil, nil)
	awaitParted(t, f, "this server up to ts=")
	require.Equal(t, []string{"2", ""}, []string{b.get(0, "k"), b.get(0, "new")})
}

// The master that was left comes back with an empty log while another server is followed: with a
// database that is older, empty, or as it was. None of them has what was done since.
func TestTheFormerMasterComesBackWithAnotherLog(t *testing.T) {
	for _, database := range []string{"older", "empty", "same"} {
		t.Run(database, func(t *testing.T) {
			a, b, c := newFileNode(t, 1, ""), newFileNode(t, 2, ""), newFileNode(t, 3, "")
			a.set(0, "first", "a")
			restore := a.backup()
			ofB, _ := b.follow(master(a.port))
			f, _ := c.follow(master(a.port))
			a.set(0, "second", "a")
			caughtUp(t, ofB, a)
			caughtUp(t, f, a)
			ofB.Tune("", 0, nil, nil)
			f.Tune("127.0.0.1", b.port, nil, nil)
			b.set(0, "third", "b")
			caughtUp(t, f, b)
			if database == "older" {
				restore()
			}
			a.shut()
			require.NoError(t, a.catalog.Close())
			require.NoError(t, os.RemoveAll(filepath.Join(a.dir, "ulog")))
			if database == "empty" {
				require.NoError(t, os.Remove(filepath.Join(a.dir, "a.kct")))
			}
			a.start()
			a.set(0, "new", "a")
			f.Tune("127.0.0.1", a.port, nil, nil)
			awaitParted(t, f, "the new master lacks updates")
			require.Equal(t, []string{"a", "b", ""}, []string{c.get(0, "second"), c.get(0, "third"), c.get(0, "new")})
		})
	}
}

// The server in the master's place bears its ID, and was made from a copy of a follower.
func TestTheMasterIsMadeAnewFromAFollower(t *testing.T) {
	a, b, c := newFileNode(t, 1, ""), newFileNode(t, 2, ""), newFileNode(t, 3, "")
	ofB, _ := b.follow(master(a.port))
	f, _ := c.follow(master(a.port))
	a.set(0, "k", strings.Repeat("1", 20<<10))
	caughtUp(t, ofB, a)
	caughtUp(t, f, a)
	a.shut()
	ofB.Tune("", 0, nil, nil)
	b.tick() // begins a segment
	b.forget()
	b.set(0, "by b", "b")
	anew := newFileNode(t, 1, "")
	ofAnew, _ := anew.follow(master(b.port))
	caughtUp(t, ofAnew, b)
	require.Contains(t, strings.Join(anew.log.lines("INFO"), "\n"), "fetching a copy")
	b.shut()
	ofAnew.Tune("", 0, nil, nil)
	anew.set(0, "new", "a")
	f.Tune("127.0.0.1", anew.port, nil, nil)
	eventually(t, "an update", func() bool { return c.get(0, "new") == "a" })
	require.Empty(t, c.log.lines("ERROR"))
}

// The same while the server that was made anew still lacks something: it is waited for like any
// other.
func TestTheMasterThatIsMadeAnewIsBehind(t *testing.T) {
	z := newFileNode(t, 4, "")
	a, b, c := newFileNode(t, 1, ""), newFileNode(t, 2, ""), newFileNode(t, 3, "")
	c.silence = patience / 3
	ofA, _ := a.follow(master(z.port))
	ofB, endB := b.follow(master(a.port))
	f, _ := c.follow(master(a.port))
	z.set(0, "large", strings.Repeat("1", 20<<10)) // the log goes on in another segment
	z.set(0, "k", "1")
	caughtUp(t, ofA, z)
	caughtUp(t, ofB, a)
	endB()
	z.set(0, "k", "2")
	caughtUp(t, ofA, z)
	caughtUp(t, f, a)
	a.shut()
	b.tick() // begins a segment
	b.forget()
	anew := newFileNode(t, 1, "")
	ofAnew, _ := anew.follow(master(b.port))
	caughtUp(t, ofAnew, b)
	f.Tune("127.0.0.1", anew.port, nil, nil)
	eventually(t, "the reason", func() bool { return strings.Contains(f.Status().Trouble, "has not yet received all updates") })
	require.Equal(t, "1", anew.get(0, "k"))
	b.follow(master(z.port)) // what anew lacks comes to it after all
	eventually(t, "the update that was lacking", func() bool { return anew.get(0, "k") == "2" })
	anew.set(0, "k", "3")
	eventually(t, "an update", func() bool { return c.get(0, "k") == "3" })
	c.noCopy()
}

// The position after copies shows when the server can say what it has received, not earlier: who
// sees the position makes it a master. The clock is read for each position record.
func TestThePositionAfterACopyIsNotAheadOfWhatIsTold(t *testing.T) {
	a, b := newFileNode(t, 1, ""), newFileNode(t, 2, "")
	f, _ := b.follow(master(a.port))
	a.set(0, "large", strings.Repeat("1", 20<<10))
	caughtUp(t, f, a)
	b.tick() // begins a segment
	b.forget()
	last := b.catalog.Log().Last()
	var early, looks atomic.Int64
	anew := &node{sid: 1, exprs: []string{":", "%"}}
	anew.clock = func() time.Time {
		if f := anew.follower.Load(); f != nil {
			at, _ := f.Position()
			looks.Add(1)
			if at >= last && len(f.Past().Marks) < 2 { // of a's log, and of b's
				early.Add(1)
			}
		}
		return time.Now()
	}
	ofAnew, _ := begin(t, anew).follow(master(b.port))
	caughtUp(t, ofAnew, b)
	eventually(t, "the stream", func() bool { return ofAnew.Status().State == replication.Streaming })
	require.Positive(t, looks.Load())
	require.Zero(t, early.Load(), "looks at which the position was ahead")
}

// A copy takes the place of newer data. What the copy lacks must come later, although this server
// has had it before.
func TestACopyThatIsBehind(t *testing.T) {
	x, a, b := newNode(t, 1), newNode(t, 2), newNode(t, 3)
	ofA, endA := a.follow(master(x.port))
	f, _ := b.follow(master(x.port))
	x.set(0, "first", "x")
	caughtUp(t, ofA, x)
	endA()
	x.set(0, "second", "x")
	caughtUp(t, f, x)
	f.Recopy()
	f.Tune("127.0.0.1", a.port, nil, nil)
	eventually(t, "the copy", func() bool { return b.get(0, "second") == "" && f.Status().State == replication.Streaming })
	ofA, _ = a.follow(master(x.port))
	caughtUp(t, ofA, x)
	require.Equal(t, "x", a.get(0, "second"))
	caughtUp(t, f, a)
	require.Equal(t, "x", b.get(0, "second"))
	requireEqualContents(t, a, b)
}

// A master that is restored from an image of its disk, with the same log, is noticed whether its
// log ends before what was received, or has grown past it with other updates since.
func TestAMasterFromAnImageOfItsDisk(t *testing.T) {
	for _, grown := range []int{0, 1, 2000} { // updates, some of them in further segments
		t.Run(fmt.Sprint(grown), func(t *testing.T) {
			a, b := newFileNode(t, 1, ""), newFileNode(t, 2, "")
			f, _ := b.follow(master(a.port))
			a.set(0, "before", "1")
			caughtUp(t, f, a)
			restore := a.backup()
			a.set(0, "lost", "1")
			caughtUp(t, f, a)
			restore()
			for i := range grown {
				a.set(0, fmt.Sprint("new", i), "1")
			}
			awaitParted(t, f, "the master has lost updates")
			require.Equal(t, "1", b.get(0, "lost"))
			require.Empty(t, b.get(0, "new0"))
		})
	}
}

// The position of a follower may be newer than all that the new master has in its log: heartbeats
// tell the end of the former log, with records that are for nobody. A new master whose clock is
// behind gives its updates older stamps than that, and they must come all the same.
func TestTheClockOfTheNewMasterIsBehind(t *testing.T) {
	z, a, c := newNode(t, 1), newNode(t, 2), newNode(t, 4)
	b := begin(t, &node{sid: 3, exprs: []string{":", "%"}, clock: func() time.Time { return time.Now().Add(-time.Hour) }})
	ofA, endA := a.follow(master(z.port))
	ofB, _ := b.follow(master(a.port))
	f, _ := c.follow(master(a.port))
	z.set(0, "k", "z")
	caughtUp(t, ofA, z)
	caughtUp(t, ofB, a)
	caughtUp(t, f, a)
	// An update that a has made itself moves its position in the log of z on. It is not sent to a,
	// which remembers the position in its own log.
	own := ulog.Update{SID: 2, Op: ulog.OpSet, Key: []byte("of a"), Value: make([]byte, 8)}
	require.NoError(t, z.catalog.DB(0).Replicate(nil, []ulog.Update{own}, nil, nil))
	caughtUp(t, ofA, z)
	before := a.catalog.Log().Last()
	endA()
	require.Greater(t, a.catalog.Log().Last(), before)
	caughtUp(t, f, a)
	a.shut()
	ofB.Tune("", 0, nil, nil)
	b.set(0, "new", "b")
	require.Less(t, b.catalog.Log().Last(), a.catalog.Log().Last())
	f.Tune("127.0.0.1", b.port, nil, nil)
	eventually(t, "the update of the new master", func() bool { return c.get(0, "new") == "b" })
	c.noCopy()
}
