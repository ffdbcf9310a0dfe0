package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/services/lock"
)

// risingFences are tokens in memory.
type risingFences struct{ bound atomic.Uint64 }

func (f *risingFences) Reserve(n uint64) (uint64, error) { return f.bound.Add(n) - n + 1, nil }

func startLocks(t *testing.T) (*lock.Server, *client.Locks) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := lock.New(lock.Options{Fences: &risingFences{}, MaxTTL: time.Hour})
	require.NoError(t, err)
	s.Start(l)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, client.NewLocks(l.Addr().String(), client.Options{Timeout: 20 * time.Second})
}

func TestLocks(t *testing.T) {
	s, locks := startLocks(t)
	ctx := t.Context()
	begun := time.Now()
	a, err := locks.Acquire(ctx, "k", client.LockOptions{})
	require.NoError(t, err)
	require.Equal(t, "k", a.Key())
	require.NoError(t, a.Err())
	_, err = locks.Acquire(ctx, "k", client.LockOptions{})
	require.ErrorIs(t, err, client.ErrLockBusy)
	_, err = locks.Acquire(ctx, "k", client.LockOptions{Wait: time.Millisecond})
	require.ErrorIs(t, err, client.ErrLockBusy)

	granted := make(chan *client.Lock, 1)
	go func() {
		b, err := locks.Acquire(ctx, "k", client.LockOptions{Wait: -1, TTL: 1000 * time.Hour})
		if err != nil {
			t.Error(err)
		}
		granted <- b
	}()
	require.Eventually(t, func() bool {
		status, err := locks.Status(ctx, "k")
		return err == nil && status == client.LockStatus{Holders: 1, Waiters: 1}
	}, 20*time.Second, time.Millisecond)
	list, err := locks.List(ctx, "")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, []bool{true, false}, []bool{list[0].Holds, list[1].Holds})
	require.Equal(t, a.Fence(), list[0].Fence)
	require.Negative(t, list[1].Left)
	require.LessOrEqual(t, list[0].Left, 30*time.Second)
	require.Greater(t, list[0].Left, 29*time.Second-time.Since(begun))
	require.NoError(t, a.Release(ctx))
	b := <-granted
	require.Greater(t, b.Fence(), a.Fence())
	require.NoError(t, b.Release(ctx))
	require.Eventually(t, func() bool { return s.Stats().Conns == 0 }, 20*time.Second, time.Millisecond)

	require.ErrorIs(t, locks.Cancel(ctx, "k", "nobody"), client.ErrNoLock)
	list, err = locks.List(ctx, "k")
	require.NoError(t, err)
	require.Empty(t, list)
	for _, key := range []string{"", "a b", "a\nquit", strings.Repeat("k", 9000)} {
		_, err := locks.Acquire(ctx, key, client.LockOptions{})
		require.ErrorContains(t, err, "a lock's key has")
	}
	_, err = locks.Status(ctx, "a b")
	require.ErrorContains(t, err, "a lock's key has")
}

// A lock outlives its TTL by renewals, and is lost at once when somebody ends it.
func TestLocksAreRenewedAndLost(t *testing.T) {
	s, locks := startLocks(t)
	ctx := t.Context()
	const ttl = 5 * time.Second
	a, err := locks.Acquire(ctx, "k", client.LockOptions{TTL: ttl})
	require.NoError(t, err)
	var list []client.LockEntry
	require.Eventually(t, func() bool {
		require.NoError(t, a.Err())
		list, err = locks.List(ctx, "k")
		require.NoError(t, err)
		require.Len(t, list, 1)
		return list[0].Age > ttl
	}, 30*time.Second, 20*time.Millisecond)
	require.Greater(t, s.Stats().Renewals, uint64(1), "one confirms the lock, and the others keep it")
	require.NoError(t, locks.Cancel(ctx, "k", list[0].Address))
	<-a.Lost()
	require.ErrorIs(t, a.Err(), client.ErrLockLost)
	require.ErrorIs(t, a.Release(ctx), client.ErrLockLost)
}

func TestTheEndOfAContextEndsTheWaiting(t *testing.T) {
	s, locks := startLocks(t)
	a, err := locks.Acquire(t.Context(), "k", client.LockOptions{})
	require.NoError(t, err)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	_, err = locks.Acquire(ctx, "k", client.LockOptions{Wait: -1})
	require.ErrorIs(t, err, cause)
	require.Eventually(t, func() bool { return s.Stats().Waiters == 0 }, 20*time.Second, time.Millisecond)
	require.NoError(t, a.Release(t.Context()))
}

func TestLocksAreLostWithTheirServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := lock.New(lock.Options{Fences: &risingFences{}})
	require.NoError(t, err)
	s.Start(l)
	locks := client.NewLocks(l.Addr().String(), client.Options{})
	a, err := locks.Acquire(t.Context(), "k", client.LockOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	<-a.Lost()
	require.ErrorIs(t, a.Release(t.Context()), client.ErrLockLost)
	_, err = locks.Acquire(t.Context(), "k", client.LockOptions{})
	require.ErrorIs(t, err, client.ErrNetwork)
}
