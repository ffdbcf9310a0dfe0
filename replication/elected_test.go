package replication_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/replication"
	"gotycoon/ulog"
)

func halt(t *testing.T, f *replication.Follower) replication.Standing {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, f.Halt(ctx))
	return f.Standing()
}

func (n *node) key() uint64 { return ulog.LogKey(n.catalog.Log().ID()) }

// A leadership that goes round between three servers: each follows the next primary behind the
// newest update that it has, and gets what it lacks, also where the clock of a former primary was
// far ahead, and its heartbeats with it.
func TestElectedMasters(t *testing.T) {
	a, b, c := newFileNode(t, 1, ""), newFileNode(t, 2, ""), newFileNode(t, 3, "")
	a.term, b.term, c.term = 1, 2, 3
	require.NoError(t, a.restart())
	a.shut()
	require.NoError(t, a.catalog.Close())
	a.clock = func() time.Time { return time.Now().Add(time.Minute) }
	a.start()
	followers := map[*node]*replication.Follower{}
	for _, n := range []*node{a, b, c} {
		followers[n], _ = n.follow(replication.Master{})
	}
	primary := a
	for _, n := range []*node{b, c} {
		followers[n].Succeed("127.0.0.1", a.port, replication.Election{Term: a.term})
	}
	a.set(0, "first", "1")
	caughtUp(t, followers[b], a)
	caughtUp(t, followers[c], a)
	for round := range 12 {
		key := fmt.Sprint("round ", round)
		ahead := []*node{a, b, c}[(round+1)%3]
		behind := []*node{a, b, c}[(round+2)%3]
		halt(t, followers[behind])
		primary.set(0, key, "1")
		caughtUp(t, followers[ahead], primary)
		at := halt(t, followers[ahead])
		require.Equal(t, primary.key(), at.Master)
		newest := at.Marks[primary.key()]
		former := primary
		primary = ahead
		primary.set(0, key, "2")
		followers[former].Succeed("127.0.0.1", primary.port, replication.Election{Term: primary.term, From: &newest})
		had := halt(t, followers[behind]).Marks[former.key()]
		require.NotZero(t, had)
		require.Less(t, had, newest)
		followers[behind].Succeed("127.0.0.1", primary.port, replication.Election{Term: primary.term, From: &had})
		for _, n := range []*node{former, behind} {
			caughtUp(t, followers[n], primary)
			require.Equal(t, "2", n.get(0, key), "round %d, server %d", round, n.sid)
			require.Zero(t, followers[n].Status().Copy.Total)
			require.Empty(t, n.log.lines("ERROR"))
		}
	}
	for _, n := range []*node{a, b, c} {
		for round := range 12 {
			require.Equal(t, "2", n.get(0, fmt.Sprint("round ", round)))
		}
	}
}

// After Halt nothing of the master comes any more, whatever the master does.
func TestHaltIsFinal(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	a.term = 1
	f, _ := b.follow(replication.Master{})
	for i := range 50 {
		f.Succeed("127.0.0.1", a.port, replication.Election{Term: 1})
		a.set(0, "k", fmt.Sprint(i))
		if i%2 == 0 {
			caughtUp(t, f, a)
		}
		halt(t, f)
		last := b.catalog.Log().Last()
		a.set(0, "k", "more")
		require.Equal(t, last, b.catalog.Log().Last())
	}
}

// What a member has acknowledged does not depend on the RTS file, which an operator may have lost.
func TestAMemberKnowsWhatItHasWithoutItsRTSFile(t *testing.T) {
	a, b := newFileNode(t, 1, ""), newFileNode(t, 2, "")
	a.term = 1
	f, end := b.follow(replication.Master{})
	var before replication.Standing
	for i := range 3 { // the text of an empty file is remembered as the one before the first
		f.Succeed("127.0.0.1", a.port, replication.Election{Term: 1})
		a.set(0, "k", fmt.Sprint(i))
		caughtUp(t, f, a)
		before = halt(t, f)
	}
	require.NotEmpty(t, before.Marks)
	end()
	require.NoError(t, b.restart())
	require.NoError(t, os.Remove(b.rts()))
	f, err := replication.OpenFollower(replication.FollowerOptions{Catalog: b.catalog, SID: b.sid, RTS: b.rts(), Cluster: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.Equal(t, before.Marks, f.Standing().Marks)
	require.False(t, f.Standing().Partial)
}

// A member that got a copy has what the primary has, and not more: the instant of the copy is later
// than the newest update, and no update itself.
func TestACopyHasNoMoreThanItsMaster(t *testing.T) {
	a, b := newFileNode(t, 1, ""), newFileNode(t, 2, "")
	a.term = 1
	require.NoError(t, a.restart())
	a.set(0, "k", "1")
	newest, _ := a.catalog.Log().NewestUpdate()
	f, _ := b.follow(replication.Master{})
	f.Recopy()
	f.Succeed("127.0.0.1", a.port, replication.Election{Term: a.term})
	require.Eventually(t, func() bool { return b.get(0, "k") == "1" && f.Status().State == replication.Streaming }, patience, 5*time.Millisecond)
	require.Equal(t, newest, halt(t, f).Marks[a.key()])
}

// An update that came with the copy of one database, and in the stream behind the older copy of
// another one, is known to be here when the member says that it has it.
func TestAMemberKnowsWhatCopiesOfDifferentInstantsBrought(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	a.term = 1
	for i := range 2000 {
		a.set(0, fmt.Sprintf("k%05d", i), strings.Repeat("x", 1000))
	}
	f, err := replication.OpenFollower(replication.FollowerOptions{
		Catalog: b.catalog, SID: b.sid, RTS: b.rts(), CopyLimit: 1 << 20, Logger: b.log.logger(), Cluster: true,
	})
	require.NoError(t, err)
	f.Start()
	defer func() { require.NoError(t, f.Close()) }()
	f.Recopy()
	f.Succeed("127.0.0.1", a.port, replication.Election{Term: 1})
	eventually(t, "the first copy", func() bool {
		s := f.Status()
		return s.State == replication.Copying && s.Copy.DB == 0 && s.Copy.Records > 0
	})
	a.set(1, "u", "1")
	newest, _ := a.catalog.Log().NewestUpdate()
	eventually(t, "the copies", func() bool { return b.get(1, "u") == "1" && f.Status().State == replication.Streaming })
	eventually(t, "a position behind the update", func() bool { at, _ := f.Position(); return at > newest })
	at := halt(t, f)
	require.Equal(t, newest, at.Marks[a.key()])
	require.False(t, at.Partial)
}
