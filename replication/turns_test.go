package replication_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/internal/netio"
)

// Followers that all want the same large updates take turns where there is no memory for all of
// them: none is refused, and they never hold more than there is.
func TestFollowersTakeTurnsWithALargeUpdate(t *testing.T) {
	const followers, size, budget = 8, 8 << 20, 25 << 20
	limits := &netio.Limits{}
	n := begin(t, &node{sid: 1, exprs: []string{":"}, oneFile: true, limits: limits})
	value := string(bytes.Repeat([]byte("v"), size))
	n.set(0, "first", value)
	n.set(0, "second", value)
	limits.SetBudget(budget)
	var all []*rawFollower
	for i := range followers {
		all = append(all, n.dialFollow(frame.Follow{SID: uint16(100 + i)}))
	}
	held := func() int64 {
		bytes := limits.Held()
		require.LessOrEqual(t, bytes, int64(budget))
		return bytes
	}
	require.Eventually(t, func() bool { return len(n.replicas.List()) == followers && held() > 2*size }, patience, time.Millisecond,
		"nobody reads yet")
	got := make(chan int, followers)
	for _, r := range all {
		go func() {
			r.take(1) // the reply's first byte
			updates := 0
			for updates < 2 {
				m, err := r.tryNext()
				switch {
				case err != nil:
					got <- updates
					return
				case m.Magic == frame.Heartbeat:
					r.ack()
				case len(m.Log) > size:
					updates++
				}
			}
			got <- updates
		}()
	}
	for done := 0; done < followers; {
		select {
		case updates := <-got:
			require.Equal(t, 2, updates)
			done++
		case <-time.After(time.Millisecond):
			held()
		}
	}
	for _, r := range all {
		require.NoError(t, r.Close())
	}
	require.Eventually(t, func() bool { return held() == 0 }, patience, time.Millisecond)
}

// An update larger than all the memory that requests may have comes as well, when nobody else holds
// any.
func TestAnUpdateLargerThanTheMemoryIsSent(t *testing.T) {
	const size = 8 << 20
	limits := &netio.Limits{}
	n := begin(t, &node{sid: 1, exprs: []string{":"}, oneFile: true, limits: limits})
	n.set(0, "large", string(bytes.Repeat([]byte("v"), size)))
	limits.SetBudget(4 << 20)
	limits.SetClosed(true)
	r := n.dialFollow(frame.Follow{SID: 2})
	require.Equal(t, byte(frame.Replication), r.take(1)[0])
	for {
		m := r.next()
		if m.Magic != frame.Heartbeat {
			require.Greater(t, len(m.Log), size)
			return
		}
		r.ack()
	}
}
