package netio

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Goroutines that never wait, as many as keep every processor busy, do not hold up a goroutine that
// waits for bytes: it runs soon after a turn that was due. With runtime.Gosched alone it runs after
// 10 ms, when the runtime's monitor asks the netpoller: some ten thousand turns later.
func TestATurnLetsThoseRunWhoseBytesHaveArrived(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const rounds, busy, soon = 100, 3, 100
	var turns turns
	var ended atomic.Bool
	var taken atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	defer ended.Store(true)
	for range busy {
		wg.Go(func() {
			for !ended.Load() {
				turns.mu.Lock()
				turns.next = time.Time{} // a pass is due
				turns.mu.Unlock()
				turns.take()
				taken.Add(1)
			}
		})
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	var late []int64
	for range rounds {
		var sent int64
		wg.Go(func() {
			sent = taken.Load()
			_, _ = w.Write([]byte{1}) // the read tells
		})
		_, err := r.Read(make([]byte, 1))
		require.NoError(t, err)
		late = append(late, taken.Load()-sent)
	}
	slices.Sort(late) // a thread of the test that the system takes off its processor is late as well
	require.LessOrEqual(t, late[rounds/2], int64(soon))
}

// Between passes others have a turn if one of them waits for the only processor, and in doubt.
func TestATurnForThoseWhoWait(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	turns := turns{next: time.Now().Add(time.Hour)}
	require.True(t, turns.openLocked())
	var ran atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() { ran.Store(true) })
	require.True(t, turns.someReady())
	for range 100 { // now and then the one that yields is the next one
		turns.take()
	}
	require.True(t, ran.Load())
	wg.Wait()
	require.Eventually(t, func() bool { return !turns.someReady() }, 10*time.Second, time.Microsecond)

	turns.mu.Lock()
	require.True(t, turns.someReady(), "somebody asks")
	turns.mu.Unlock()
	turns.event = nil
	require.True(t, turns.someReady(), "there are no passes")
}

// All connections that come while a pass is under way go on when it is over, and the next pass is
// due after turnEvery.
func TestTurnsShareAPass(t *testing.T) {
	var turns turns
	now := time.Now()
	pass, first := turns.join(now)
	require.True(t, first)
	for range 3 {
		joined, first := turns.join(now)
		require.False(t, first)
		require.Equal(t, pass, joined)
	}
	turns.askNetpoller()
	turns.end()
	<-pass
	// On a slow machine the next pass may be due by now: its own time says what comes before it.
	none, first := turns.join(turns.next.Add(-1))
	require.False(t, first)
	require.Nil(t, none)
	_, first = turns.join(turns.next)
	require.True(t, first)
}

// Without a descriptor a turn only yields.
func TestTurnsWithoutADescriptor(t *testing.T) {
	turns := turns{opened: true}
	pass, first := turns.join(time.Now())
	require.Nil(t, pass)
	require.False(t, first)
	turns.take()
}
