package replication_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	dbgate "gotycoon/db/gate"
	"gotycoon/replication"
	"gotycoon/ulog"
)

// segments returns how many files the log has.
func (n *node) segments() int {
	n.t.Helper()
	files, err := n.catalog.LogFiles()
	require.NoError(n.t, err)
	return len(files)
}

// What a follower has not acknowledged is kept for it, though the log is removed all the time. When
// the disk is full, or the follower is gone, nothing is.
func TestTheLogIsKeptForFollowers(t *testing.T) {
	a := newNode(t, 1)
	a.set(0, "first", "x")
	from := a.catalog.Log().Last()
	c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", a.port))
	require.NoError(t, err)
	_, err = c.Write(frame.AppendFollow(nil, frame.Follow{SID: 9, TS: uint64(from)}))
	require.NoError(t, err)
	eventually(t, "the follower", func() bool { return a.replicas.List() != nil })
	fill := func() {
		for i := range 3000 {
			a.set(i%2, fmt.Sprintf("key %05d", i), strings.Repeat("v", 50))
			if i%500 == 0 {
				require.NoError(t, a.catalog.RemoveLogFiles(1<<62))
			}
		}
	}
	fill()
	require.NoError(t, a.catalog.RemoveLogFiles(1<<62))
	require.Greater(t, a.segments(), 3)
	held := a.catalog.Log().Holds(nil)
	require.Len(t, held, 1)
	require.Equal(t, "the slave with sid=9", held[0].What)
	require.Equal(t, from, held[0].From)
	r, err := a.catalog.Log().NewReader(from)
	require.NoError(t, err)
	require.NoError(t, r.Lost())
	require.NoError(t, r.Close())

	a.catalog.Gate().Set(dbgate.Limits{Disk: -1})
	require.NoError(t, a.catalog.RemoveLogFiles(1<<62))
	require.Equal(t, 1, a.segments())
	a.catalog.Gate().Set(dbgate.Limits{Disk: 1 << 40})
	fill()
	require.Greater(t, a.segments(), 3)
	require.NoError(t, c.Close())
	eventually(t, "nobody holds the log", func() bool {
		require.NoError(t, a.catalog.RemoveLogFiles(1<<62))
		return a.segments() == 1
	})
}

// A follower's hold goes with what it acknowledges.
func TestFollowersThatHaveEverythingKeepNothing(t *testing.T) {
	a, b := begin(t, &node{sid: 1, exprs: []string{":", "%"}, grace: time.Millisecond}), newNode(t, 2)
	f, _ := b.follow(master(a.port))
	for i := range 3000 {
		a.set(i%2, fmt.Sprintf("key %05d", i), strings.Repeat("v", 50))
	}
	caughtUp(t, f, a)
	eventually(t, "nothing to be kept", func() bool {
		require.NoError(t, a.catalog.RemoveLogFiles(1<<62))
		return a.segments() == 1
	})
	require.Equal(t, replication.Streaming, f.Status().State)
}

// While a follower fetches several copies, and from the last one until it follows, the log is kept
// from the first one on.
func TestTheLogIsKeptFromTheFirstCopyOn(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	for i := range 3000 {
		a.set(i%2, fmt.Sprintf("key %05d", i), strings.Repeat("v", 50))
	}
	a.forget()
	f, _ := b.follow(master(a.port))
	for i := 0; f.Status().State != replication.Streaming; i++ {
		a.set(i%2, fmt.Sprintf("key %05d", i%3000), "changed")
		require.NoError(t, a.catalog.RemoveLogFiles(1<<62))
		require.Less(t, i, 1_000_000)
	}
	a.set(0, "end", "x")
	caughtUp(t, f, a)
	requireEqualContents(t, a, b)
	require.Equal(t, 2, strings.Count(strings.Join(b.log.lines("INFO"), "\n"), "fetching a copy of the master's database"), "one of each database")
}

// A follower acknowledges where it is more often than it makes a note of that on its disk. What is
// between the two is kept for it, or it would be told of a gap after a crash, and get copies in
// place of its data, though it lacks nothing.
func TestTheLogIsKeptForAFollowerThatCrashes(t *testing.T) {
	a, b := newFileNode(t, 1, ""), newFileNode(t, 2, "")
	ofA, _ := a.follow(master(b.port))
	ofB, end := b.follow(master(a.port))
	a.set(0, "made by a", "1")
	last := a.catalog.Log().Last()
	eventually(t, "a note", func() bool { return b.savedRTS() >= last })
	for i := range 5 { // they come to the log of a, and are nothing that b makes a note of
		b.set(0, "made by b", strings.Repeat(fmt.Sprint(i), 20<<10))
		caughtUp(t, ofA, b)
	}
	caughtUp(t, ofB, a)
	for begun := time.Now(); a.segments() > 1 && time.Since(begun) < 2*time.Second; <-time.After(10 * time.Millisecond) {
		require.NoError(t, a.catalog.RemoveLogFiles(1<<62))
	}
	crashed := filepath.Join(t.TempDir(), "crashed")
	require.NoError(t, b.catalog.SyncLogs())
	require.NoError(t, os.CopyFS(crashed, os.DirFS(b.dir)))
	end()
	b.shut()
	require.NoError(t, b.catalog.Close())
	require.NoError(t, os.RemoveAll(b.dir))
	require.NoError(t, os.CopyFS(b.dir, os.DirFS(crashed)))
	b.start()
	b.follow(master(a.port))
	a.set(0, "after", "1")
	eventually(t, "an update", func() bool { return b.get(0, "after") != "" })
	require.NotContains(t, strings.Join(b.log.lines("INFO"), "\n"), "fetching a copy")
	require.Empty(t, a.log.lines("ERROR"))
}

// The log is kept for a follower of our kind for two minutes after it has gone: it comes back and
// goes on. Each has one such hold, which ends when it is back, when the time is over, or when the
// disk is full.
func TestTheLogIsKeptForFollowersThatComeBack(t *testing.T) {
	var seconds atomic.Int64
	seconds.Store(1_800_000_000)
	a := begin(t, &node{sid: 1, exprs: []string{":", "%"}, clock: func() time.Time { return time.Unix(seconds.Load(), 0) }})
	b := newNode(t, 2)
	f, end := b.follow(master(a.port))
	a.set(0, "first", "x")
	a.set(1, "first", "x")
	caughtUp(t, f, a)
	names := func() (all []string) {
		for _, h := range a.catalog.Log().Holds(nil) {
			require.True(t, h.Weak)
			all = append(all, h.What)
		}
		return all
	}
	away := []string{"the slave with sid=2, which has gone and may come back"}
	for i := range 3 {
		end()
		eventually(t, "the follower to go", func() bool { return slices.Equal(names(), away) })
		for j := range 1000 {
			a.set(j%2, fmt.Sprintf("key %d %05d", i, j), strings.Repeat("v", 50))
		}
		require.NoError(t, a.catalog.RemoveLogFiles(1<<62))
		require.Greater(t, a.segments(), 3)
		f, end = b.follow(master(a.port))
		caughtUp(t, f, a)
		require.Equal(t, []string{"the slave with sid=2"}, names())
	}
	requireEqualContents(t, a, b)
	require.Empty(t, a.log.lines("ERROR"))
	require.NotContains(t, strings.Join(b.log.lines("INFO"), "\n"), "fetching a copy")

	end()
	eventually(t, "the follower to go", func() bool { return slices.Equal(names(), away) })
	require.NoError(t, a.catalog.RemoveLogFiles(1<<62))
	require.Greater(t, a.segments(), 1)
	seconds.Add(121)
	require.NoError(t, a.catalog.RemoveLogFiles(1<<62))
	require.Equal(t, 1, a.segments())
	require.Empty(t, names())
}

// However many followers come and go, the holds for those that have gone are bounded.
func TestFollowersThatHaveGoneAreNotManyHolds(t *testing.T) {
	a := newNode(t, 1)
	for sid := range 100 {
		c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", a.port))
		require.NoError(t, err)
		_, err = c.Write(frame.AppendFollow(nil, frame.Follow{Flags: frame.Extended, SID: uint16(sid + 2)}))
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		require.NoError(t, err)
		require.NoError(t, c.Close())
		a.set(0, "k", "v") // whose goroutine notices that it has gone
		eventually(t, "the follower to go", func() bool { return len(a.replicas.List()) == 0 })
	}
	eventually(t, "64 holds", func() bool { return len(a.catalog.Log().Holds(nil)) == 64 })
}

// The hold between two copies ends at the moment when the second copy begins, and a removal forgets
// it. The log is held for that copy all the same.
func TestAHoldThatEndsWhileACopyBegins(t *testing.T) {
	begun := time.Now()
	var late atomic.Bool
	// Called once, between a look at the clock and what is made of it.
	var between atomic.Pointer[func()]
	log, err := ulog.Open(t.TempDir(), ulog.Options{Now: func() time.Time {
		now := begun
		if late.Load() {
			now = now.Add(time.Hour)
		}
		if f := between.Swap(nil); f != nil {
			(*f)()
		}
		return now
	}})
	require.NoError(t, err)
	defer log.Close()
	source := replication.NewSource(replication.SourceOptions{Log: log})
	source.Copying("127.0.0.1:1", frame.CopyRequest{Flags: 9 << 16})()
	require.Len(t, log.Holds(nil), 1)
	removal := func() {
		late.Store(true)
		require.Empty(t, log.Holds(nil))
	}
	between.Store(&removal)
	end := source.Copying("127.0.0.1:1", frame.CopyRequest{Flags: 9 << 16})
	require.Len(t, log.Holds(nil), 1)
	end()
}
