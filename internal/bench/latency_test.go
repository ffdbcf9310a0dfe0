//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMillis(t *testing.T) {
	for d, want := range map[time.Duration]string{
		12 * time.Microsecond:            "0.012",
		1234 * time.Microsecond:          "1.23",
		12345 * time.Microsecond:         "12.3",
		12_345_678_000 * time.Nanosecond: "12,346",
	} {
		require.Equal(t, want, millis(d).String())
	}
}

// Every small key is stored before the gets begin: a get of a missing record would be cheap.
func TestFillCoversAllKeys(t *testing.T) {
	seen := map[string]bool{}
	for conn := range latencyConns {
		v := &volley{conns: latencyConns, count: keySpace}
		for k := 0; v.due(conn, k) != never; k++ {
			seen[string(smallKeys(nil, uint64(k*latencyConns+conn)))] = true
		}
	}
	require.Len(t, seen, keySpace)
}
