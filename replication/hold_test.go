package replication_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/binproto/frame"
	"gotycoon/db"
	"gotycoon/replication"
)

// segments returns how many files the log has.
func (n *node) segments() int {
	n.t.Helper()
	files, err := n.catalog.LogFiles()
	require.NoError(n.t, err)
	return len(files)
}

// What a follower has not acknowledged is kept for it, though the log is removed all the time. When the disk is full, or the follower is gone,
// nothing is.
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

	a.catalog.SetRoom(db.Room{Disk: -1})
	require.NoError(t, a.catalog.RemoveLogFiles(1<<62))
	require.Equal(t, 1, a.segments())
	a.catalog.SetRoom(db.Room{Disk: 1 << 40})
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
	a, b := newNode(t, 1), newNode(t, 2)
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

// While a follower fetches several copies, and from the last one until it follows, the log is kept from the first one on.
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
