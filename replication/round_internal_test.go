package replication

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPausesGrowToTheirMost(t *testing.T) {
	attempts := 0
	for _, about := range []time.Duration{500, 1000, 2000, 4000, 8000, 10_000, 10_000} {
		about *= time.Millisecond
		require.InDelta(t, about.Seconds(), backOff(&attempts, fullFirst, fullMost).Seconds(), about.Seconds()/4)
	}
	attempts = 1 << 20
	require.LessOrEqual(t, backOff(&attempts, retryFirst, retryMost), retryMost*5/4)
}
