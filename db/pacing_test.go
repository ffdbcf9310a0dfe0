package db

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Clients that exceed the limits of a file are admitted as fast as the collector removes records,
// and twice as slowly when that is not enough. All share one clock.
func TestPacing(t *testing.T) {
	const limit, slack = 640_000, 10_000
	now := time.Unix(1000, 0)
	var p pacing
	p.took(time.Second, 0) // nothing was removed: nothing is known
	p.took(100*time.Millisecond, 1000)
	for _, n := range []int64{0, limit, limit + slack} {
		p.excess.Store(excess(n, limit))
		require.Zero(t, p.turn(now, 1_000_000), n)
	}
	p.excess.Store(excess(limit+slack*3/2, limit))
	require.Zero(t, p.turn(now, 0), "a client that only reads")
	require.Zero(t, p.turn(now, 500), "the first")
	require.Equal(t, 50*time.Millisecond, p.turn(now, 1), "the next waits until the records of the first would be removed")
	p.excess.Store(excess(limit+100*slack, limit))
	require.Equal(t, 50*time.Millisecond+100*time.Microsecond, p.turn(now, 1))
	require.Equal(t, 50*time.Millisecond+300*time.Microsecond, p.turn(now, 1), "twice as slowly")
	require.Zero(t, p.turn(now.Add(time.Second), 1), "time has passed")
	p.excess.Store(0)
	require.Zero(t, p.turn(now, 1))
}

func TestASmallFileHasSlackToo(t *testing.T) {
	require.EqualValues(t, 1000, excess(10+leastSlack, 10))
	require.LessOrEqual(t, excess(9, 10), int64(0))
}
