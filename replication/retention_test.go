package replication_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/replication"
	"gotycoon/ulog"
)

// trim removes what nobody needs, but for the newest file.
func (n *node) trim() ulog.Trimmed {
	n.t.Helper()
	done, err := n.catalog.TrimLog(ulog.Limits{Count: 1}, false)
	require.NoError(n.t, err)
	return done
}

func (n *node) fill(times int) {
	n.t.Helper()
	for i := range times {
		n.set(i%n.catalog.Len(), fmt.Sprintf("key %05d", i), strings.Repeat("v", 50))
	}
}

func (n *node) said(kind, text string) int {
	return strings.Count(strings.Join(n.log.lines(kind), "\n"), text)
}

// A follower that is away for less than the time it may be comes back without a copy, also when the
// master is started again meanwhile. After that time it fetches a copy, the master says so once,
// and nothing is missing.
func TestAFollowerAwayWithinTheBoundNeedsNoCopy(t *testing.T) {
	var seconds atomic.Int64
	seconds.Store(1_800_000_000)
	a := newFileNode(t, 1, "")
	a.shut()
	require.NoError(t, a.catalog.Close())
	a.clock = func() time.Time { return time.Unix(seconds.Load(), 0) }
	a.keep = &replication.SourceOptions{Away: time.Hour}
	a.start()
	b := newFileNode(t, 2, "")
	f, end := b.follow(master(a.port))
	a.fill(100)
	caughtUp(t, f, a)
	require.NoError(t, a.catalog.Log().SaveHolds())
	end()
	a.fill(2000)
	a.trim()
	require.NoError(t, a.restart())
	seconds.Add(3000)
	a.fill(2000)
	a.trim()
	require.Greater(t, a.segments(), 5)
	f, end = b.follow(master(a.port))
	caughtUp(t, f, a)
	requireEqualContents(t, a, b)
	require.Zero(t, b.said("INFO", "fetching a copy"))
	require.Zero(t, a.said("SYSTEM", "not kept any more"))

	end()
	eventually(t, "the follower to go", func() bool { return len(a.replicas.List()) == 0 })
	a.fill(2000)
	seconds.Add(3601)
	a.trim()
	a.fill(100)
	a.trim()
	require.Less(t, a.segments(), 3)
	require.Equal(t, 1, a.said("SYSTEM", "not kept any more for the slave with sid=2, which has gone and may come back"), "%v", a.log.lines("SYSTEM"))
	a.set(0, "last", "1")
	f, _ = b.follow(master(a.port))
	caughtUp(t, f, a)
	requireEqualContents(t, a, b)
	require.NotZero(t, b.said("INFO", "fetching a copy"))
}

// A follower that is away keeps no more files than it may.
func TestAFollowerAwayBeyondTheSizeFetchesACopy(t *testing.T) {
	a := begin(t, &node{sid: 1, exprs: []string{":", "%"}, keep: &replication.SourceOptions{Away: time.Hour, Most: 100 << 10}})
	b := newNode(t, 2)
	f, end := b.follow(master(a.port))
	a.fill(100)
	caughtUp(t, f, a)
	for _, of := range []struct {
		updates int
		copies  int
	}{{500, 0}, {5000, 1}} {
		end()
		eventually(t, "the follower to go", func() bool { return len(a.replicas.List()) == 0 })
		a.fill(of.updates)
		a.trim()
		a.trim()
		require.Equal(t, of.copies, a.said("SYSTEM", "not kept any more for the slave with sid=2"))
		f, end = b.follow(master(a.port))
		a.set(0, "last", fmt.Sprint(of.updates))
		caughtUp(t, f, a)
		requireEqualContents(t, a, b)
		require.Equal(t, of.copies > 0, b.said("INFO", "fetching a copy") > 0)
	}
}

// Followers come and go in any order with removals, and need nothing but the log: between the
// request of a follower and its hold, and between its end and its return, no update that it lacks
// is removed.
func TestFollowersConnectWhileTheLogIsRemoved(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	f, end := b.follow(master(a.port))
	a.fill(2)
	caughtUp(t, f, a)
	first := b.said("INFO", "fetching a copy") // of databases that were there before the follower
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				a.set(i%2, fmt.Sprintf("key %05d", i%5000), strings.Repeat("v", 50))
			}
		}
	})
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_, err := a.catalog.TrimLog(ulog.Limits{Count: 1 + rand.IntN(3)}, false)
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
	for i := range 40 {
		if i%3 == 0 {
			end()
			f, end = b.follow(master(a.port))
		} else {
			a.cut()
		}
		from, _ := f.Position()
		eventually(t, "updates", func() bool { at, _ := f.Position(); return at > from })
	}
	close(done)
	wg.Wait()
	a.set(0, "last", "1")
	caughtUp(t, f, a)
	requireEqualContents(t, a, b)
	require.Equal(t, first, b.said("INFO", "fetching a copy"))
	require.Empty(t, a.log.lines("ERROR"))
}

// A follower that is connected and takes nothing keeps no more files than it may either, whether it
// is of our kind or of the original.
func TestAFollowerThatStandsStillKeepsNoMoreThanItMay(t *testing.T) {
	for _, flags := range []uint32{0, frame.Extended} {
		a := begin(t, &node{sid: 1, exprs: []string{":", "%"}, keep: &replication.SourceOptions{Most: 100 << 10}})
		a.set(0, "first", "1")
		c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", a.port))
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write(frame.AppendFollow(nil, frame.Follow{Flags: flags, SID: 9, TS: uint64(a.catalog.Log().Last())}))
		require.NoError(t, err)
		eventually(t, "the follower", func() bool { return a.replicas.List() != nil })
		a.fill(500)
		a.trim()
		require.Greater(t, a.segments(), 1)
		require.Zero(t, a.said("SYSTEM", "not kept any more"))
		a.fill(5000)
		a.trim()
		a.fill(1000)
		a.trim()
		require.Equal(t, 1, a.segments())
		require.Equal(t, 1, a.said("SYSTEM", "not kept any more for the slave with sid=9, "))
	}
}

// A follower connects again before the end of its former connection is noticed. The end then leaves
// no hold at the place where the follower was long ago.
func TestAFormerConnectionThatEndsLateHoldsNothing(t *testing.T) {
	log, err := ulog.Open(t.TempDir(), ulog.Options{})
	require.NoError(t, err)
	defer log.Close()
	by := ulog.Holder{Kind: ulog.Follower, What: "the slave with sid=2", Key: "2@h", Weak: true}
	former, present := log.Hold(by, 100), log.Hold(by, 200)
	former.Leave(time.Hour)
	require.Len(t, log.Holds(nil), 1)
	require.Equal(t, ulog.Stamp(200), log.Holds(nil)[0].From)
	present.Leave(time.Hour)
	require.Len(t, log.Holds(nil), 1)
	require.Equal(t, ulog.Away, log.Holds(nil)[0].Kind)
}
