package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Where threads switch again and again while a leader waits for the disk, the only processor has
// company for a moment. When that has not helped, the next attempt comes later.
func TestTheMonitorCalmsDown(t *testing.T) {
	for _, c := range []struct{ own, fewer int }{{1, 0}, {2, 1}, {4, 3}} {
		m := pretend(c.own)
		m.crowd.given, m.fewer, m.number = c.fewer, c.fewer, 1
		look := func(syncs uint64, switches int64) int {
			m.now = m.now.Add(processorsEvery)
			m.sum.ran += processorsEvery
			m.synced.Count += syncs
			m.switches += switches
			m.look(m.now)
			return m.number
		}
		require.Equal(t, 1, look(0, 10000), "the disk is not waited for")
		require.Equal(t, 1, look(leastSyncs-1, 10000), "hardly")
		require.Equal(t, 1, look(50, 50*tooManyFor-1))
		require.Equal(t, 2, look(50, 50*tooManyFor))
		require.Equal(t, 2, look(50, 1000))
		require.Equal(t, 1, look(50, 1000), "calmFor is over")
		unrest := func() (looks int) {
			for look(50, 1000) == 1 {
				looks++
			}
			look(50, 1000)
			require.Equal(t, 1, look(50, 1000))
			return looks
		}
		require.InDelta(t, leastUnrest/processorsEvery, unrest(), 4)
		require.InDelta(t, 2*leastUnrest/processorsEvery, unrest(), 4)
		require.Equal(t, 1, look(50, 100), "it has helped")
		require.InDelta(t, 4*leastUnrest/processorsEvery, unrest(), 5)
		require.InDelta(t, leastUnrest/processorsEvery, unrest(), 4)
		m.now = m.now.Add(2 * mostUnrest)
		require.Zero(t, unrest(), "a pause")
		require.InDelta(t, leastUnrest/processorsEvery, unrest(), 4)
	}
}

// Two processors that nobody has given up stay as they are: the monitor takes none away.
func TestTwoProcessorsNeedNoCalm(t *testing.T) {
	m := pretend(2)
	for range 10 {
		m.now = m.now.Add(processorsEvery)
		m.synced.Count += 50
		m.switches += 10000
		m.look(m.now)
		require.Equal(t, 2, m.number)
		require.Zero(t, m.calm.until.Sub(time.Time{}))
	}
}
