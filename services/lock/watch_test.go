package lock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKeysThatMostWaitForComeFirst(t *testing.T) {
	s, addr := start(t, Options{})
	a, b := dial(t, addr), dial(t, addr)
	for _, key := range []string{"k1", "k2", "k3"} {
		require.Contains(t, a.call("lock %s 1 0 60", key), "GRANTED")
	}
	b.send("lock k2 1 -1 60\nlock k3 2 30 60\n")
	require.Eventually(t, func() bool { return s.Stats().Waiters == 2 }, 30*time.Second, time.Millisecond)
	keys, all := s.Keys(2, 10)
	require.Equal(t, 3, all)
	require.Len(t, keys, 2)
	require.Equal(t, "k2", keys[0].Name)
	require.Equal(t, 1, keys[0].Holders)
	require.Equal(t, 1, keys[0].Waiters)
	holder, waiter := keys[0].Requests[0], keys[0].Requests[1]
	require.Equal(t, a.LocalAddr().String(), holder.Client)
	require.Equal(t, b.LocalAddr().String(), waiter.Client)
	require.Greater(t, holder.Left, time.Second)
	require.Negative(t, waiter.Left, "it waits without end")
	require.Equal(t, 2, keys[1].Requests[1].Max)

	keys, _ = s.Keys(10, 1)
	require.Len(t, keys, 3)
	require.Len(t, keys[0].Requests, 1)
	require.Equal(t, "k1", keys[2].Name)
}
