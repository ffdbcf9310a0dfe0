package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

func TestIn(t *testing.T) {
	for d, want := range map[time.Duration]client.Expiry{
		time.Hour: 3600, time.Second: 1, time.Second + 1: 2, 500 * time.Millisecond: 1, 1: 1,
		0: client.Never, -1: -1, -time.Hour: -1,
	} {
		require.Equal(t, want, client.In(d), d)
	}
}

func TestAt(t *testing.T) {
	require.Equal(t, client.Never, client.At(time.Time{}))
	for at, want := range map[time.Time]client.Expiry{
		time.Unix(4_000_000_000, 0): -4_000_000_000, time.Unix(4_000_000_000, 1): -4_000_000_001,
		time.Unix(1, 0): -1, time.Unix(0, 0): -1, time.Unix(-5, 0): -1,
	} {
		require.Equal(t, want, client.At(at), at)
	}
}
