package replication_test

import (
	"bytes"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
)

// heapInUse is what is left of Go's heap after a collection.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Followers that wait hold little, also after a large update, which each of them has been read from
// the log.
func TestIdleFollowersHoldLittle(t *testing.T) {
	const followers, size = 60, 2 << 20
	n := begin(t, &node{sid: 1, exprs: []string{":"}, oneFile: true})
	n.set(0, "small", "x")
	var large atomic.Int64
	for i := range followers {
		flags := uint32(0)
		if i%2 == 0 {
			flags = frame.Extended
		}
		r := n.dialFollow(frame.Follow{Flags: flags, SID: uint16(100 + i)})
		require.Equal(t, byte(frame.Replication), r.take(1)[0])
		go func() { // until the connection ends
			for {
				m, err := r.tryNext()
				if err != nil {
					return
				}
				switch {
				case m.Magic == frame.Heartbeat:
					if _, err := r.Write([]byte{byte(frame.Ack)}); err != nil {
						return
					}
				case len(m.Log) > size && bytes.Count(m.Log[len(m.Log)-size:], []byte("v")) == size:
					large.Add(1)
				}
			}
		}()
	}
	require.Eventually(t, func() bool { return len(n.replicas.List()) == followers }, patience, time.Millisecond)
	n.set(0, "small", "y") // all have been at the end of the log
	before := heapInUse()
	n.set(0, "large", string(bytes.Repeat([]byte("v"), size)))
	require.Eventually(t, func() bool { return large.Load() == followers }, patience, time.Millisecond)
	require.Eventually(t, func() bool { return heapInUse() < before+3*size }, patience, 50*time.Millisecond,
		"the record, and 64 KiB for each follower")
}

// A large update is in memory once for each follower that it is being sent to, beside what reading
// it takes.
func TestALargeUpdateIsSentFromWhereItIs(t *testing.T) {
	const followers, size = 8, 8 << 20
	n := begin(t, &node{sid: 1, exprs: []string{":"}, oneFile: true})
	n.set(0, "large", string(bytes.Repeat([]byte("v"), size)))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.TotalAlloc
	for i := range followers {
		r := n.dialFollow(frame.Follow{SID: uint16(100 + i)})
		got, err := io.CopyN(io.Discard, r, size)
		require.NoError(t, err)
		require.EqualValues(t, size, got)
	}
	runtime.ReadMemStats(&m)
	require.Less(t, m.TotalAlloc-before, uint64(followers*size*5/2), "the record is read twice: to check its group, and to send it")
}
