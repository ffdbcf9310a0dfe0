package replication_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/dberr"
	dbgate "gotycoon/db/gate"
	"gotycoon/replication"
	"gotycoon/ulog"
)

const never = "\xff\xff\xff\xff\xff" // expiration time in front of stored values

func TestFollowerAppliesEveryKindOfUpdate(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	a.set(0, "gone", "x")
	a.set(1, "other", "1")
	require.NoError(t, a.catalog.DB(0).Clear(nil))
	a.set(0, "", "empty key")
	a.set(0, "k", "1")
	require.NoError(t, a.catalog.DB(0).Append(nil, []byte("k"), []byte("2"), 1000))
	require.ErrorIs(t, a.catalog.DB(0).Remove(nil, []byte("missing")), dberr.ErrNoRecord)
	a.set(1, "last", "x")

	f, end := b.follow(master(a.port))
	eventually(t, "the last update", func() bool { return b.get(1, "last") == "x" })
	a.set(1, "live", "y")
	eventually(t, "an update made meanwhile", func() bool { return b.get(1, "live") == "y" })

	_, want, err := a.catalog.DB(0).Get(nil, nil, []byte("k"))
	require.NoError(t, err)
	value, xt, err := b.catalog.DB(0).Get(nil, nil, []byte("k"))
	require.NoError(t, err)
	require.Equal(t, "12", string(value))
	require.Equal(t, want, xt)
	// It is written after the record is there.
	eventually(t, "the log", func() bool { return len(b.logged()) >= len(a.logged()) })
	require.Equal(t, a.logged(), b.logged(), "the log has the same updates, with the ID of the first server")

	last := a.catalog.Log().Last()
	eventually(t, "the position", func() bool { at, _ := f.Position(); return at >= last })
	end()
	at, following := f.Position()
	require.True(t, following)
	require.Equal(t, fmt.Sprintf("%020d\n", at), b.readRTS())
	require.Equal(t, []string{
		fmt.Sprintf("replication started: host=127.0.0.1 port=%d rts=0", a.port),
		fmt.Sprintf("replication finished: host=127.0.0.1 port=%d", a.port),
	}, b.log.lines("SYSTEM"))
	require.Empty(t, b.log.lines("ERROR"))

	a.set(0, "afterwards", "z")
	b.follow(master(a.port))
	eventually(t, "what was missed", func() bool { return b.get(0, "afterwards") == "z" })
	eventually(t, "the log", func() bool { return len(b.logged()) >= len(a.logged()) })
	require.Equal(t, a.logged(), b.logged(), "nothing is fetched twice")
}

func TestRTSFileIsKeptWhileConnected(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2, filepath.Join(t.TempDir(), "a.kct"))
	b.follow(master(a.port))
	a.set(0, "a", "1")
	last := a.catalog.Log().Last()
	eventually(t, "the file to be written", func() bool { return b.savedRTS() >= last })
	require.Equal(t, "1", b.get(0, "a"))
	a.set(0, "a", "2")
	last = a.catalog.Log().Last()
	eventually(t, "the file to be written again", func() bool { return b.savedRTS() >= last })
	require.Equal(t, "2", b.get(0, "a"))
}

// caughtUp waits until a follower has been told everything that is in the logs now.
func caughtUp(t *testing.T, f *replication.Follower, of *node) {
	t.Helper()
	last := of.catalog.Log().Last()
	eventually(t, "the follower to catch up", func() bool { at, _ := f.Position(); return at >= last })
}

func TestDualMasterHasNoEcho(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	ofA, _ := a.follow(master(b.port))
	ofB, _ := b.follow(master(a.port))
	for i := range 100 {
		a.set(0, fmt.Sprint("a", i), "x")
		b.set(1, fmt.Sprint("b", i), "y")
	}
	for range 3 { // an echo would come within one exchange, or make another one
		caughtUp(t, ofA, b)
		caughtUp(t, ofB, a)
	}
	for _, n := range []*node{a, b} {
		lines := n.logged()
		require.Len(t, lines, 200)
		slices.Sort(lines)
		require.Len(t, slices.Compact(lines), 200, "each update once")
		require.Equal(t, "x", n.get(0, "a99"))
		require.Equal(t, "y", n.get(1, "b99"))
	}
}

func TestChainKeepsTheOrigin(t *testing.T) {
	a, b, c := newNode(t, 1), newNode(t, 2), newNode(t, 3)
	b.follow(master(a.port))
	c.follow(master(b.port))
	a.set(0, "k", "from a")
	eventually(t, "the update of a", func() bool { return c.get(0, "k") == "from a" })
	b.set(1, "k", "from b")
	eventually(t, "the update of b", func() bool { return c.get(1, "k") == "from b" })
	want := []string{update(1, 0, ulog.OpSet, "k", never+"from a"), update(2, 1, ulog.OpSet, "k", never+"from b")}
	eventually(t, "both in the log of c", func() bool { return slices.Equal(want, c.logged()) })
}

func TestFollowerComesBackAfterTheMasterRestarts(t *testing.T) {
	a, b := newNode(t, 1, filepath.Join(t.TempDir(), "a.kct")), newNode(t, 2)
	b.follow(master(a.port))
	a.set(0, "k", "1")
	eventually(t, "the first update", func() bool { return b.get(0, "k") == "1" })
	a.shut()
	require.NoError(t, a.catalog.Close())
	eventually(t, "an attempt that fails", func() bool { return len(b.log.lines("SYSTEM")) == 3 })
	a.start()
	a.set(0, "k", "2")
	eventually(t, "the second update", func() bool { return b.get(0, "k") == "2" })
	place := fmt.Sprintf("host=127.0.0.1 port=%d", a.port)
	lines := b.log.lines("SYSTEM")
	require.Len(t, lines, 4)
	require.Equal(t, []string{
		"replication started: " + place + " rts=0", "replication finished: " + place, "replication was deferred: " + place,
	}, lines[:3], "deferred is logged once, however often it is tried")
	require.Regexp(t, "^replication started: "+place+` rts=1\d{18}$`, lines[3])
	eventually(t, "the log to have it", func() bool { return len(b.logged()) >= 2 })
	require.Len(t, b.logged(), 2, "nothing is fetched twice")
}

func TestUnreachableMaster(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	a.shut()
	f, _ := b.follow(master(a.port))
	deferred := fmt.Sprintf("replication was deferred: host=127.0.0.1 port=%d", a.port)
	eventually(t, "the line", func() bool { return slices.Equal(b.log.lines("SYSTEM"), []string{deferred}) })
	f.Tune("no.such.host.invalid", 5, nil, nil)
	eventually(t, "the other line", func() bool {
		return slices.Equal(b.log.lines("SYSTEM"), []string{
			deferred,
			"replication setting was modified: host=no.such.host.invalid port=5 ts=* iv=*",
			"replication was deferred: host=no.such.host.invalid port=5",
		})
	})
}

func TestTune(t *testing.T) {
	a, b, c := newNode(t, 1), newNode(t, 2), newNode(t, 3)
	a.set(0, "a", "1")
	b.set(0, "b", "1")
	f, _ := c.follow(replication.Master{})
	_, following := f.Position()
	require.False(t, following)

	f.Tune("127.0.0.1", a.port, new(ulog.Stamp(0)), new(5*time.Millisecond))
	eventually(t, "the update of a", func() bool { return c.get(0, "a") == "1" })
	require.Equal(t, replication.Master{Host: "127.0.0.1", Port: a.port, Interval: 5 * time.Millisecond}, f.Master())

	f.Tune("127.0.0.1", b.port, new(ulog.Stamp(12345)), nil)
	eventually(t, "the update of b", func() bool { return c.get(0, "b") == "1" })

	f.Tune("", 1978, new(ulog.Stamp(77)), new(time.Duration(0)))
	eventually(t, "the RTS file", func() bool { return c.readRTS() == "00000000000000000077\n" })
	_, following = f.Position()
	require.False(t, following)
	require.Zero(t, f.Master().Interval)
	lines := c.log.lines("SYSTEM")
	require.Equal(t, []string{
		fmt.Sprintf("replication setting was modified: host=127.0.0.1 port=%d ts=0 iv=5.000000", a.port),
		fmt.Sprintf("replication started: host=127.0.0.1 port=%d rts=0", a.port),
		fmt.Sprintf("replication setting was modified: host=127.0.0.1 port=%d ts=12345 iv=*", b.port),
		fmt.Sprintf("replication finished: host=127.0.0.1 port=%d", a.port),
		fmt.Sprintf("replication started: host=127.0.0.1 port=%d rts=12345", b.port),
		"replication setting was modified: host= port=1978 ts=77 iv=0.000000",
		fmt.Sprintf("replication finished: host=127.0.0.1 port=%d", b.port),
	}, lines)
	require.Empty(t, c.log.lines("INFO"), "nothing went wrong")
}

func TestReplicationOfAReadOnlyServerWaits(t *testing.T) {
	dir := t.TempDir()
	expr := filepath.Join(dir, "a.kct")
	plain, err := db.Open([]string{expr}, db.Options{})
	require.NoError(t, err)
	require.NoError(t, plain.Close())
	a := newNode(t, 1)
	a.set(0, "k", "v")

	catalog, err := db.Open([]string{expr}, db.Options{ReadOnly: true})
	require.NoError(t, err)
	defer catalog.Close()
	var log logText
	f, err := replication.OpenFollower(replication.FollowerOptions{
		Catalog: catalog, SID: 2, RTS: filepath.Join(dir, "rts"), Master: master(a.port), Logger: log.logger(),
	})
	require.NoError(t, err)
	f.Start()
	eventually(t, "the complaint", func() bool { return len(log.lines("ERROR")) > 0 })
	require.Equal(t, []string{"replication waits, since updates cannot be stored: 4: no permission: permission denied"},
		log.lines("ERROR"))
	at, _ := f.Position()
	require.Zero(t, at)
	require.NoError(t, f.Close())
}

// A follower whose disk is full tries again soon, and then less and less often.
func TestAFollowerWithoutRoomTriesAgainSoon(t *testing.T) {
	dir := t.TempDir()
	a := newNode(t, 1)
	a.set(0, "k", "v")
	catalog, err := db.Open([]string{filepath.Join(dir, "a.kct")}, db.Options{})
	require.NoError(t, err)
	defer catalog.Close()
	catalog.Gate().Set(dbgate.Limits{Disk: -1})
	var log logText
	f, err := replication.OpenFollower(replication.FollowerOptions{
		Catalog: catalog, SID: 2, RTS: filepath.Join(dir, "rts"), Master: master(a.port), Logger: log.logger(),
	})
	require.NoError(t, err)
	f.Start()
	begun := time.Now()
	eventually(t, "the second try", func() bool { return len(log.lines("ERROR")) > 1 })
	require.Less(t, time.Since(begun), 5*time.Second)
	catalog.Gate().Set(dbgate.Limits{Disk: 1 << 30})
	eventually(t, "the update", func() bool { n, err := catalog.DB(0).Count(nil); return n == 1 && err == nil })
	require.NoError(t, f.Close())
}
