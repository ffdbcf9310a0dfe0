//go:build linux

package netio

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A connection that rests gets a goroutine when it is called, which is told so once.
func TestACallEndsARest(t *testing.T) {
	c, _, _ := bareConn(t, idleLoops(t, 1))
	told := make(chan error, 2)
	c.RestIn(func() { told <- c.WaitByte(); told <- c.WaitByte() })
	require.ErrorIs(t, c.WaitByte(), ErrRests)
	c.Call()
	require.ErrorIs(t, <-told, ErrCalled)
	require.ErrorIs(t, <-told, ErrRests)
	require.True(t, c.Parked())
}

// A connection that is served is told before it rests, after the bytes that have come.
func TestACallIsNoted(t *testing.T) {
	c, _, client := bareConn(t, idleLoops(t, 1))
	c.RestIn(func() {})
	_, err := client.Write([]byte("x"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		c.Call()
		c.Call()
		if err = c.WaitByte(); err == nil {
			return true
		}
		require.ErrorIs(t, err, ErrCalled) // the byte is still on its way
		return false
	}, waitLimit, time.Millisecond)
	c.Advance(1)
	require.ErrorIs(t, c.WaitByte(), ErrCalled)
	require.ErrorIs(t, c.WaitByte(), ErrRests)
}

// News and a call at the same time are a call: the owner looks for both.
func TestACallHidesNoNews(t *testing.T) {
	c, _, _ := bareConn(t, idleLoops(t, 1))
	for _, order := range [][]func(){{c.Call, func() { c.rouse() }}, {func() { c.rouse() }, c.Call}} {
		c.RestIn(func() {})
		for _, f := range order {
			f()
		}
		c.drained = true
		require.False(t, c.park())
		require.False(t, c.drained, "it reads once more")
		require.True(t, c.called)
		require.EqualValues(t, running, c.state.Load())
	}
}

// A connection that waits in a goroutine is not called, nor one that has never rested.
func TestOnlyConnectionsOfLoopsAreCalled(t *testing.T) {
	c, _, client := bareConn(t, idleLoops(t, 1))
	require.False(t, c.InLoop())
	c.Call()
	c.RestIn(func() {})
	require.True(t, c.InLoop())
	require.NoError(t, c.Settle())
	require.False(t, c.InLoop())
	c.Call()
	_, err := client.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, c.WaitByte())
}

// What is left before a call is seen after it, whatever the owner does meanwhile.
func TestNoCallIsLost(t *testing.T) {
	const callers, each = 4, 5000
	c, _, _ := bareConn(t, idleLoops(t, 1))
	var (
		left, seen atomic.Int64
		serving    atomic.Int32
		all        = make(chan struct{})
	)
	c.RestIn(func() {
		if serving.Add(1) != 1 {
			t.Error("two goroutines serve the connection")
		}
		for {
			if seen.Store(left.Load()); seen.Load() == callers*each {
				close(all) // and the connection never rests again
				return
			}
			serving.Add(-1)
			err := c.WaitByte()
			if err == ErrRests {
				return
			}
			serving.Add(1)
			if err != ErrCalled {
				t.Error(err)
				return
			}
		}
	})
	var calling sync.WaitGroup
	defer calling.Wait()
	for range callers {
		calling.Go(func() {
			for range each {
				left.Add(1)
				c.Call()
			}
		})
	}
	c.resume()
	<-all
}
