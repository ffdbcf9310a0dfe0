package ulog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSettledStampsAreNeverGivenOutAgain(t *testing.T) {
	clock := newClock()
	l := mustOpen(t, t.TempDir(), Options{Now: clock.now, SyncInterval: time.Hour})
	first := mustCommit(t, l, "a")
	clock.add(time.Hour)
	at := StampAt(clock.now())
	require.Equal(t, at, l.Promise(at))
	require.Equal(t, first, l.Promise(first), "less is as true")

	clock.add(-2 * time.Hour)
	pending := mustAppend(t, l, "b", "c")
	require.Equal(t, at+2, pending)
	require.Equal(t, first, l.Promise(at+10), "b and c are not yet safe")
	require.NoError(t, l.Wait(pending))
	require.Equal(t, at+10, l.Promise(at+10))
	require.Equal(t, at+11, l.Tick())
	require.NoError(t, l.Close())
}
