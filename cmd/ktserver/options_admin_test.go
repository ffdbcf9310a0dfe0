package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/server"
)

func TestAdminOptions(t *testing.T) {
	o, err := parse(strings.Fields("-admin localhost:1990 -ready-lag 2.5 -slow 10ms -sample 100"))
	require.NoError(t, err)
	require.Equal(t, server.AdminConfig{
		Addr: "localhost:1990", ReadyLag: 2500 * time.Millisecond, Slow: 10 * time.Millisecond, Sample: 100,
	}, o.Admin)
}

// TestSpans: seconds as of -tout, or a unit.
func TestSpans(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "1": time.Second, "0.25": 250 * time.Millisecond, "10ms": 10 * time.Millisecond, "1m30s": 90 * time.Second, "5m": 5 * time.Minute,
	} {
		var got time.Duration
		require.NoError(t, span{&got}.Set(text), text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "x", "10 parsecs"} {
		var got time.Duration
		require.ErrorIs(t, span{&got}.Set(text), errSpan, text)
	}
}
