package netio

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// share simulates so many requests that work in slices on as many processors as they like, and
// returns how long all of them have worked together within a second.
func share(t *testing.T, requests, procs int, slice time.Duration) (sum time.Duration) {
	t.Helper()
	var l lane
	begin := time.Unix(1000, 0)
	at := make([]time.Time, requests) // until when each works
	for i := range at {
		at[i] = begin.Add(slice)
	}
	for {
		first := 0
		for i := range at {
			if at[i].Before(at[first]) {
				first = i
			}
		}
		if at[first].Sub(begin) > time.Second {
			return sum
		}
		sum += slice
		wait := l.turn(at[first], slice, procs)
		require.LessOrEqual(t, wait, mostSleep)
		if wait < leastSleep {
			wait = 0
		}
		at[first] = at[first].Add(wait + slice)
	}
}

// Requests that work for long have half of the processors, however many they are; one alone is not
// held up.
func TestLongWorkHasHalfOfTheProcessors(t *testing.T) {
	for _, slice := range []time.Duration{300 * time.Microsecond, 5 * time.Millisecond} {
		for procs, lanes := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 16: 8} {
			for _, requests := range []int{1, 2, 3, 8, 40} {
				want := time.Duration(min(requests, lanes)) * time.Second
				require.InEpsilon(t, want, share(t, requests, procs, slice), 0.25, "%d requests, %d processors, %v", requests, procs, slice)
			}
		}
	}
}

// Who has waited for something else has not worked meanwhile.
func TestWaitingIsNoWork(t *testing.T) {
	var l lane
	now := time.Unix(1000, 0)
	require.Zero(t, l.turn(now, time.Hour, 2))
	require.Equal(t, longestWork, l.turn(now, time.Millisecond, 2))
	require.Zero(t, l.turn(now.Add(time.Second), time.Millisecond, 2))
}

// However many there are, each goes on before long: it may hold what others wait for.
func TestNobodySleepsForLong(t *testing.T) {
	var l lane
	now := time.Unix(1000, 0)
	for range 10_000 {
		require.LessOrEqual(t, l.turn(now, longestWork, 2), mostSleep)
	}
	require.Zero(t, l.turn(now.Add(mostSleep+longestWork), longestWork, 2), "and the clock does not run away")
}

// The question whether to go on is where long work takes turns.
func TestHeedTakesTurns(t *testing.T) {
	limits := new(Limits)
	c := &Conn{opts: Options{Limits: limits}}
	heed := c.Heed("")
	require.NoError(t, heed()) // it has not worked yet
	end := time.Now().Add(20 * time.Millisecond)
	limits.lane.next.Store(end.UnixNano())
	require.NoError(t, heed())
	require.False(t, time.Now().Before(end))
}
