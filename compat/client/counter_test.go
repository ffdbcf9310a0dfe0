package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/services/counter"
)

// startCounters runs a counter server until the test ends.
func startCounters(t *testing.T) (*counter.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := counter.New(counter.Options{})
	s.Start(l)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, l.Addr().String()
}

func dialCounters(t *testing.T, addr string) *client.Counters {
	t.Helper()
	c, err := client.DialCounters(t.Context(), addr, client.Options{Timeout: 20 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestCounters(t *testing.T) {
	_, addr := startCounters(t)
	a, b, ctx := dialCounters(t, addr), dialCounters(t, addr), t.Context()
	require.NoError(t, a.Noop(ctx))
	_, err := a.Get(ctx, "n")
	require.ErrorIs(t, err, client.ErrNoCounter)
	require.NoError(t, a.Acquire(ctx, "n", 3, 4))
	require.ErrorIs(t, b.Acquire(ctx, "n", 2, 4), client.ErrNotAvailable)
	require.NoError(t, b.Acquire(ctx, "n", 1, 4))
	require.ErrorIs(t, b.Release(ctx, "n", 2), client.ErrNotAcquired)
	require.NoError(t, a.Release(ctx, "n", 2))
	n, err := b.Get(ctx, "n")
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	require.EqualError(t, b.Acquire(ctx, "n", 2, 1), "counter server: Invalid arguments")
	require.EqualError(t, b.Acquire(ctx, strings.Repeat("n", 1<<16), 1, 1), "counter server: Invalid arguments")
	require.NoError(t, b.Noop(ctx), "a refusal is no end")

	var dumped []client.CounterEntry
	for e, err := range a.Dump(ctx) {
		require.NoError(t, err)
		dumped = append(dumped, e)
		require.ErrorIs(t, a.Noop(ctx), client.ErrNetwork, "it is busy")
	}
	require.Equal(t, []client.CounterEntry{{Name: "n", Current: 2, Maximum: 4}}, dumped)
	stats, err := a.Stats(ctx)
	require.NoError(t, err)
	require.Len(t, stats, 15)
	require.Equal(t, client.CounterStat{Name: "total_objects", Value: "1"}, stats[1])
}

func TestALoopOverADumpMayEndEarly(t *testing.T) {
	_, addr := startCounters(t)
	c, ctx := dialCounters(t, addr), t.Context()
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, c.Acquire(ctx, name, 1, 1))
	}
	for range c.Dump(ctx) {
		break
	}
	n, err := c.Get(ctx, "c")
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

func TestAcquireWait(t *testing.T) {
	_, addr := startCounters(t)
	a, b, ctx := dialCounters(t, addr), dialCounters(t, addr), t.Context()
	require.NoError(t, a.Acquire(ctx, "n", 1, 1))
	cause := errors.New("enough")
	soon, cancel := context.WithCancelCause(ctx)
	time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	require.ErrorIs(t, dialCounters(t, addr).AcquireWait(soon, "n", 1, 1), cause)
	time.AfterFunc(50*time.Millisecond, func() { a.Close() })
	require.NoError(t, b.AcquireWait(ctx, "n", 1, 1))
}

func TestCountersAreLostWithTheirConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := counter.New(counter.Options{})
	s.Start(l)
	c := dialCounters(t, l.Addr().String())
	require.NoError(t, c.Acquire(t.Context(), "n", 1, 1))
	require.NoError(t, s.Close())
	first := c.Noop(t.Context())
	require.ErrorIs(t, first, client.ErrNetwork)
	require.Equal(t, first, c.Noop(t.Context()))
	for _, err := range c.Dump(t.Context()) {
		require.Equal(t, first, err)
	}
	_, err = client.DialCounters(t.Context(), l.Addr().String(), client.Options{})
	require.ErrorIs(t, err, client.ErrNetwork)
}
