package replication

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/ulog"
)

// soon is a timeout that passes in a test, and within which a slow test asks what holds before.
const soon = time.Second

func newQuorum(required int, timeout time.Duration, degrade bool) *Quorum {
	return NewQuorum(QuorumOptions{SID: 1, Required: required, Timeout: timeout, Degrade: degrade})
}

// begin waits for a stamp in a goroutine, and returns when the wait is in its level.
func (q *Quorum) begin(t *testing.T, at ulog.Stamp, usual, asked int) <-chan error {
	t.Helper()
	before := q.figures.waiting.Load()
	ended := make(chan error, 1)
	go func() { ended <- q.WaitConfirmed(at, usual, asked) }()
	require.Eventually(t, func() bool { return q.figures.waiting.Load() > before }, time.Minute, time.Millisecond)
	return ended
}

func requireWaiting(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		t.Fatalf("the wait has ended: %v", err)
	default:
	}
}

func TestQuorumTakesTheStampOfTheNthFollower(t *testing.T) {
	q := newQuorum(2, time.Minute, false)
	a, b, c := q.join(2, "a"), q.join(3, "b"), q.join(4, "c")
	require.Zero(t, q.Confirmed(2, 0))
	a.acknowledged(100, time.Now())
	require.Zero(t, q.Confirmed(2, 0))
	require.EqualValues(t, 100, q.Confirmed(1, 0))
	b.acknowledged(90, time.Now())
	c.acknowledged(95, time.Now())
	require.EqualValues(t, 95, q.Confirmed(2, 0))
	require.EqualValues(t, 90, q.Confirmed(0, 3))
	require.EqualValues(t, 90, q.Confirmed(2, 3))
	require.Equal(t, everything, q.Confirmed(0, 0))
}

func TestQuorumCountsAServerOnce(t *testing.T) {
	q := newQuorum(2, soon, false)
	old, again := q.join(2, "a:1"), q.join(2, "a:2")
	old.acknowledged(100, time.Now())
	again.acknowledged(110, time.Now())
	require.Zero(t, q.Confirmed(2, 0), "one server twice is not two")
	require.EqualValues(t, 110, q.Confirmed(1, 0))
	require.Nil(t, q.join(1, "self"), "a server with this server's ID is sent nothing")
	old.leave()
	require.EqualValues(t, 1, q.present.Load())
}

func TestQuorumStaysConfirmedAndCountsNoneThatHasGone(t *testing.T) {
	q := newQuorum(1, time.Minute, false)
	a, b := q.join(2, "a"), q.join(3, "b")
	a.acknowledged(100, time.Now())
	a.leave()
	require.EqualValues(t, 100, q.Confirmed(1, 0))
	b.acknowledged(95, time.Now())
	require.EqualValues(t, 100, q.Confirmed(1, 0), "a watermark fell")
	require.Zero(t, q.Confirmed(2, 0), "a follower that has gone counts")
	a = q.join(2, "a")
	require.EqualValues(t, 1, q.present.Load(), "a follower counts before its first acknowledgement")
	a.acknowledged(120, time.Now())
	require.EqualValues(t, 120, q.Confirmed(1, 0))
}

func TestOneAcknowledgementWakesAllThatItConfirms(t *testing.T) {
	q := newQuorum(1, time.Minute, false)
	a := q.join(2, "a")
	late := q.begin(t, 30, 1, 0)
	early := []<-chan error{q.begin(t, 20, 1, 0), q.begin(t, 10, 1, 0), q.begin(t, 20, 0, 1)}
	require.True(t, a.due(false))
	require.Len(t, a.kicked(), 1)
	a.ask(20)
	require.True(t, a.due(false), "somebody waits for 30")
	a.acknowledged(20, time.Now())
	for _, ended := range early {
		require.NoError(t, <-ended)
	}
	requireWaiting(t, late)
	a.ask(30)
	require.False(t, a.due(false))
	require.Empty(t, a.kicked())
	a.acknowledged(35, time.Now())
	require.NoError(t, <-late)
	require.NoError(t, q.WaitConfirmed(35, 1, 0))
}

func TestFenceEndsWaits(t *testing.T) {
	q := newQuorum(1, time.Minute, false)
	a := q.join(2, "a")
	a.acknowledged(10, time.Now())
	under := q.begin(t, 20, 1, 0)
	fence := errors.New("another server leads")
	q.Fence(fence)
	require.ErrorIs(t, <-under, fence)
	a.acknowledged(30, time.Now())
	require.ErrorIs(t, q.WaitConfirmed(5, 1, 0), fence, "what was confirmed before")
	require.ErrorIs(t, q.WaitConfirmed(5, 0, 0), fence, "without followers")
	require.Zero(t, q.Confirmed(0, 0))
	require.ErrorIs(t, q.Admits(0, 0), dberr.ErrFewReplicas)
	q.Unfence()
	require.NoError(t, q.WaitConfirmed(30, 1, 0))
	require.NoError(t, q.Admits(1, 0))
}

func TestQuorumRefusesWhenFollowersAreMissing(t *testing.T) {
	q := newQuorum(1, soon, false)
	require.NoError(t, q.Admits(1, 0), "followers have the timeout to come")
	err := q.WaitConfirmed(10, 1, 0)
	require.ErrorIs(t, err, dberr.ErrUnconfirmed)
	require.ErrorContains(t, err, "no other has been seen")
	require.ErrorIs(t, q.Admits(1, 0), dberr.ErrFewReplicas)
	require.NoError(t, q.Admits(0, 0))
	require.ErrorIs(t, q.Admits(0, 1), dberr.ErrFewReplicas)
	require.ErrorIs(t, q.Admits(0, MaxReplicas+1), dberr.ErrFewReplicas)
	require.ErrorIs(t, q.WaitConfirmed(10, 0, MaxReplicas+1), dberr.ErrUnconfirmed)
	a := q.join(7, "10.0.0.7:1")
	require.ErrorContains(t, q.Admits(1, 0), "sid=7 at 10.0.0.7:1, connected, no acknowledgement")
	a.acknowledged(10, time.Now())
	require.NoError(t, q.Admits(1, 0))
	require.EqualValues(t, 1, q.figures.unconfirmed.Load())
}

func TestAFollowerThatDoesNotAnswerIsNotThere(t *testing.T) {
	q := newQuorum(1, soon, false)
	a := q.join(2, "a")
	a.acknowledged(10, time.Now())
	asked := time.Now()
	require.ErrorIs(t, q.WaitConfirmed(20, 1, 0), dberr.ErrUnconfirmed)
	require.ErrorIs(t, q.Admits(1, 0), dberr.ErrFewReplicas)
	a.acknowledged(20, asked)
	require.ErrorIs(t, q.Admits(1, 0), dberr.ErrFewReplicas, "an acknowledgement that took longer than the timeout")
	require.NoError(t, q.WaitConfirmed(20, 1, 0), "but what it says is true")
	a.acknowledged(20, time.Now())
	require.NoError(t, q.Admits(1, 0))
}

func TestDegradedLevels(t *testing.T) {
	q := newQuorum(1, soon, true)
	strict := make(chan error, 1)
	require.NoError(t, q.WaitConfirmed(10, 1, 0))
	require.Equal(t, everything, q.Confirmed(1, 0), "readers do not wait either")
	require.NoError(t, q.Admits(1, 0))
	require.ErrorIs(t, q.Admits(1, 1), dberr.ErrFewReplicas, "a client that asks for a follower")
	go func() { strict <- q.WaitConfirmed(20, 1, 1) }()
	require.ErrorIs(t, <-strict, dberr.ErrUnconfirmed)
	a := q.join(2, "a")
	a.acknowledged(20, time.Now())
	require.EqualValues(t, 20, q.Confirmed(1, 0))
	require.NoError(t, q.WaitConfirmed(20, 1, 1))
}

func TestOnlyChosenFollowersCount(t *testing.T) {
	q := newQuorum(1, time.Minute, false)
	a, b := q.join(2, "a"), q.join(3, "b")
	q.SetCounts(func(sid uint16) bool { return sid == 3 })
	a.acknowledged(100, time.Now())
	require.Zero(t, q.Confirmed(1, 0))
	require.Zero(t, q.present.Load())
	b.acknowledged(50, time.Now())
	require.EqualValues(t, 50, q.Confirmed(1, 0))
	q.SetCounts(nil)
	require.EqualValues(t, 100, q.Confirmed(1, 0))
	q.SetRequired(2)
	require.Equal(t, 2, q.Required())
}

// TestQuorumUnderLoad has many goroutines wait while followers acknowledge, come and go. A wait
// that ends without an error must be at or below what a follower has acknowledged.
func TestQuorumUnderLoad(t *testing.T) {
	q := newQuorum(1, time.Minute, false)
	const last = 2000
	var acked [2]struct {
		sync.Mutex
		at ulog.Stamp
	}
	var all sync.WaitGroup
	for i := range acked {
		all.Go(func() {
			v := q.join(uint16(2+i), "a")
			for at := ulog.Stamp(1 + i); at <= last+1; at += 7 {
				if at%5 == 0 {
					v.leave()
					v = q.join(uint16(2+i), "a")
				}
				acked[i].Lock()
				acked[i].at = at
				acked[i].Unlock()
				v.ask(at)
				v.acknowledged(at, time.Now())
			}
			v.acknowledged(last, time.Now())
		})
	}
	for w := range 16 {
		all.Go(func() {
			for at := ulog.Stamp(w + 1); at <= last-20; at += 16 {
				if err := q.WaitConfirmed(at, 1, 0); err != nil {
					t.Error(err)
				}
				most := ulog.Stamp(0)
				for i := range acked {
					acked[i].Lock()
					most = max(most, acked[i].at)
					acked[i].Unlock()
				}
				if most < at {
					t.Errorf("%d is confirmed, and %d acknowledged", at, most)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, q.figures.waiting.Load())
}
