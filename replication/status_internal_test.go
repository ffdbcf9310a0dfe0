package replication

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A master that falls silent may have updates that the follower does not know of: the lag grows
// from the last sign of life, long before the connection counts as stalled.
func TestTheLagGrowsWhileTheMasterIsSilent(t *testing.T) {
	var s status
	s.begin()
	beat := time.Unix(1_800_000_000, 0)
	s.beat(beat)
	for after, want := range map[time.Duration]float64{
		0: 0, time.Second: 0, 1900 * time.Millisecond: 0, // the next heartbeat is due
		2 * time.Second: 2, 3 * time.Second: 3, 4900 * time.Millisecond: 4.9, 6 * time.Second: 6,
	} {
		st := s.look(beat.Add(after))
		require.Equal(t, want, st.Seconds, after)
		require.Equal(t, after > stallAfter, st.State == Stalled, after)
	}
	s.beat(beat.Add(7 * time.Second))
	require.Zero(t, s.look(beat.Add(7*time.Second)).Seconds)
}
