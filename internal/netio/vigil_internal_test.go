//go:build linux

package netio

import (
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/rawio"
)

// trial is a vigil, and a load that a test describes.
type trial struct {
	vigil
	now    time.Time
	served uint64
}

// pass lets the leader serve so many connections in a second, with and without vigils, and returns
// the part of the time in which it kept vigils.
func (tr *trial) pass(d time.Duration, without, with float64) float64 {
	const step = 100 * time.Microsecond
	due, kept, all := 0.0, 0, 0
	for end := tr.now.Add(d); tr.now.Before(end); all++ {
		rate := without
		if tr.length(tr.now, tr.served) > 0 {
			rate = with
			kept++
		}
		tr.now = tr.now.Add(step)
		due += rate * step.Seconds()
		whole := uint64(due)
		tr.served, due = tr.served+whole, due-float64(whole)
	}
	return float64(kept) / float64(all)
}

// Vigils go on where more is served with them, and only there.
func TestVigilsThatPay(t *testing.T) {
	tr := &trial{now: time.Unix(1000, 0)}
	require.Greater(t, tr.pass(time.Second, 20_000, 40_000), 0.8)
	require.Greater(t, tr.pass(time.Minute, 20_000, 40_000), 0.95-float64(trialFor)/float64(paidFor))
	require.Less(t, tr.pass(time.Second, 40_000, 44_000), 0.3, "until the next trial")
	require.Less(t, tr.pass(time.Minute, 40_000, 44_000), 0.01)
	require.Less(t, tr.pass(time.Minute, 40_000, 20_000), 0.01)
	tr.pass(mostRest, 20_000, 40_000)
	require.Greater(t, tr.pass(time.Second, 20_000, 40_000), 0.8)
}

// A server with hardly anything to do keeps hardly any vigils, and finds out soon when it has more.
func TestVigilsOfAnIdleServer(t *testing.T) {
	tr := &trial{now: time.Unix(1000, 0)}
	require.Less(t, tr.pass(time.Minute, 1000, 3000), 0.1)
	require.Greater(t, tr.pass(time.Second, 20_000, 40_000), 0.7)
}

// Where others need the core, vigils end although they pay, and trials become rare.
func TestDisturbedVigilsEnd(t *testing.T) {
	tr := &trial{now: time.Unix(1000, 0)}
	require.Greater(t, tr.pass(time.Second, 20_000, 40_000), 0.8)
	kept := 0.0
	for range 100 {
		kept += tr.pass(100*time.Millisecond, 20_000, 40_000)
		if tr.pays {
			for range mostBroken {
				tr.disturb(tr.now)
			}
		}
		require.False(t, tr.pays)
	}
	require.Less(t, kept/100, 0.1)
}

// A poller hears of everything, awake and asleep, however both follow on each other.
func TestPollersHearAwakeAndAsleep(t *testing.T) {
	const rounds = 3000
	l := idleLoops(t, 1).loops[0]
	c, bare, client := bareConn(t, l.all)
	c.RestIn(func() {})
	require.NoError(t, c.watch())
	var answering sync.WaitGroup
	defer answering.Wait()
	answering.Go(func() {
		_, _ = io.Copy(client, client) // to the end of the connection
	})
	defer bare.Cut()
	letter, slept, kept := []byte{'x'}, 0, 0
	for i := range rounds {
		_, errno := rawio.Write(uintptr(bare.fd), letter)
		require.Zero(t, errno)
		length := time.Duration(0)
		if i%5 > 1 {
			length = time.Hour
		}
		require.NoError(t, l.poller.poll(true, func(time.Time) time.Duration { return length }))
		heard := 0
		l.poller.each(func(int, bool) { heard++ })
		require.Equal(t, 1, heard)
		_, errno = rawio.Read(uintptr(bare.fd), letter)
		require.Zero(t, errno)
		if l.poller.slept() {
			slept++
		}
		if l.poller.kept > 0 {
			kept++
		}
	}
	require.Positive(t, slept)
	require.Positive(t, kept)
}
