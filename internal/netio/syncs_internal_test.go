//go:build linux

package netio

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// leaderOf has conns rest in a loop whose leader is the test.
func leaderOf(t *testing.T, conns int) (l *loop, all []*Conn, send func(i int)) {
	t.Helper()
	loops := idleLoops(t, 1)
	l = loops.loops[0]
	sends := make([]func(), conns)
	for i := range conns {
		c, _, client := bareConn(t, loops)
		c.RestIn(func() {})
		c.loop = l
		require.NoError(t, c.watch())
		require.True(t, c.park())
		all = append(all, c)
		sends[i] = func() {
			_, err := client.Write([]byte("x"))
			require.NoError(t, err)
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.bare.fd), Events: unix.POLLIN}}, int(waitLimit.Milliseconds()))
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
	}
	return l, all, func(i int) { sends[i]() }
}

// A leader serves all that has come before it waits for the disk, and waits once for all of them.
func TestALeaderSyncsWhenNothingElseHasCome(t *testing.T) {
	l, conns, send := leaderOf(t, 3)
	send(1)
	l.unsynced = append(l.unsynced, conns[0]) // served in a round before
	require.Same(t, conns[1], l.take(1), "served before the disk is waited for")
	l.syncs.since = time.Now().Add(time.Hour) // however slow the test is, mostGather is not over
	require.False(t, conns[1].settling)
	l.unsynced = append(l.unsynced, conns[1])
	send(2)
	require.Same(t, conns[2], l.take(1))
	l.unsynced = append(l.unsynced, conns[2])
	for _, c := range conns {
		require.Same(t, c, l.take(1))
		require.True(t, c.settling)
		require.True(t, c.leadsSync())
	}
	require.False(t, l.settling, "nobody else was needed")
	require.Empty(t, l.unsynced)
}

// Requests that come without end keep no reply from its client for long.
func TestGatheringEnds(t *testing.T) {
	l, conns, send := leaderOf(t, 2)
	l.unsynced = append(l.unsynced, conns[0])
	for n := 0; ; n++ {
		require.Less(t, n, 1_000_000)
		send(1)
		c := l.take(1)
		if c == conns[0] {
			return
		}
		require.Same(t, conns[1], c)
		require.True(t, c.park())
	}
}

// A slow disk has a settler, and is found to be quick when it is.
func TestASlowDiskHasASettler(t *testing.T) {
	l, conns, send := leaderOf(t, 2)
	for range 2 * syncWeight {
		l.synced(l.disk, 2*quickDisk, 1)
	}
	served := make(chan bool, 1)
	conns[0].resume = func() { served <- conns[0].settler != nil }
	l.unsynced = append(l.unsynced, conns[0])
	send(1)
	require.Same(t, conns[1], l.take(1))
	require.True(t, <-served)
	l.all.work.Wait()
	for range 4 * syncWeight {
		l.synced(new(int), 9*quickDisk, 0) // another disk says nothing
		l.synced(l.disk, quickDisk/4, 0)
	}
	l.unsynced = append(l.unsynced, conns[0])
	require.Same(t, conns[0], l.take(1))
	require.True(t, conns[0].leadsSync())
}

// A leader waits for a disk that takes longer only where most of its work waits with it.
func TestWhoWaitsForAFairDisk(t *testing.T) {
	for _, c := range []struct {
		usual  time.Duration
		others int
		leads  bool
	}{{quickDisk + 1, 0, true}, {fairDisk, 2, true}, {fairDisk, 3, false}, {fairDisk + 1, 0, false}, {quickDisk, 3, true}} {
		l, conns, _ := leaderOf(t, 2)
		served := make(chan struct{})
		for _, conn := range conns {
			conn.resume = func() { served <- struct{}{} }
		}
		l.syncs.usual = slowDisk
		l.turn = uint64(2 + c.others)
		l.unsynced = append(l.unsynced, conns...)
		l.mu.Lock()
		l.settle()
		l.mu.Unlock()
		<-served
		<-served
		l.all.work.Wait()
		l.syncs.usual = c.usual
		l.unsynced = append(l.unsynced, conns[0])
		l.mu.Lock()
		require.Equal(t, c.leads, l.gathers(), c)
		require.Equal(t, c.leads, l.leadSync(), c)
		l.mu.Unlock()
	}
}

// What was most of a leader's work is told by what it has served, whoever sends the replies.
func TestMostOfTheWork(t *testing.T) {
	l, conns, _ := leaderOf(t, 2)
	for _, conn := range conns {
		conn.resume = func() {}
	}
	sync := func(others uint64) bool {
		l.turn += 2 + others
		l.unsynced = append(l.unsynced, conns...)
		require.Same(t, conns[0], l.take(l.term))
		require.Same(t, conns[1], l.take(l.term))
		return l.syncs.most
	}
	require.True(t, sync(2))
	require.True(t, sync(2), "the replies of the sync before are no work of others")
	require.False(t, sync(3))
	l.turn += 5
	l.unsynced = append(l.unsynced, conns...)
	require.Same(t, conns[0], l.take(l.term))
	l.look()
	require.True(t, l.look())
	l.all.closePollers() // ends the next leader
	l.all.work.Wait()    // the settler, too, which has sent the second reply
	require.False(t, l.syncs.most, "nothing else was served")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncs.begin(2, l.turn+4)
	require.True(t, l.syncs.most)
}

// A leader whose wait is long loses the leadership. A settler has the replies that are left, and
// those that come next.
func TestASettlerGoesOnForALeaderThatWaits(t *testing.T) {
	l, conns, _ := leaderOf(t, 3)
	served := make(chan *Conn, len(conns))
	for _, c := range conns {
		c.resume = func() { served <- c }
	}
	l.unsynced = append(l.unsynced, conns...)
	require.Same(t, conns[0], l.take(1))
	l.look()
	require.True(t, l.look(), "the leader has not gone on since")
	require.False(t, conns[0].leadsSync())
	require.Nil(t, l.take(1))
	l.all.closePollers() // ends the next leader
	require.Same(t, conns[1], <-served)
	require.Same(t, conns[2], <-served)
	l.all.work.Wait()
	l.unsynced = append(l.unsynced, conns[0])
	l.mu.Lock()
	require.False(t, l.leadSync())
	l.mu.Unlock()
}

// The time of leaders is told with what they waited for: updates that were most of their work, or
// few of many requests.
func TestWhatLeadersWaitFor(t *testing.T) {
	for _, c := range []struct {
		others int
		most   bool
	}{{0, true}, {2, true}, {20, false}} {
		l, conns, _ := leaderOf(t, 2)
		l.turn = uint64(2 + c.others)
		l.unsynced = append(l.unsynced, conns...)
		require.Same(t, conns[0], l.take(1))
		l.synced(l.disk, time.Millisecond, 1)
		l.synced(l.disk, time.Second, 7) // somebody who has lost the leadership
		want := Syncing{Count: 1, Slept: time.Millisecond}
		if c.most {
			want.Most = time.Millisecond
		}
		require.Equal(t, want, l.all.Syncing(), "%d others", c.others)
		l.syncs.usual = fairDisk
		l.synced(l.disk, 2*time.Millisecond, 0) // a settler
		want.Most *= 3
		require.Equal(t, want, l.all.Syncing(), "%d others", c.others)
		l.synced(new(int), time.Second, 0) // replies that wait for another log
		l.syncs.usual = 2 * slowDisk
		l.synced(l.disk, time.Millisecond, 0)
		require.Equal(t, want, l.all.Syncing(), "on a slow disk a second loop may be of use")
	}
}
