package replication_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
	"gotycoon/ulog"
)

// atEnd reads the beginning of a stream up to the first heartbeat, and acknowledges it.
func (r *rawFollower) atEnd() {
	r.t.Helper()
	require.Equal(r.t, byte(frame.Replication), r.take(1)[0])
	for r.next().Magic != frame.Heartbeat {
	}
	r.ack()
}

// A follower of our kind is not asked for an acknowledgement after each update of a flow, and is
// asked behind the last one.
func TestAFlowOfUpdatesHasFewHeartbeats(t *testing.T) {
	const updates = 1000
	n := newNode(t, 1)
	r := n.dialFollow(frame.Follow{Flags: frame.Extended, SID: 2})
	r.atEnd()
	begun := time.Now()
	asked := 0
	for range updates {
		n.set(0, "k", "v")
		m := r.next()
		for m.Magic == frame.Heartbeat {
			asked++
			r.ack()
			m = r.next()
		}
	}
	// Heartbeats are at least ten milliseconds apart, however slow the machine is.
	require.LessOrEqual(t, asked, 2+int(time.Since(begun)/(10*time.Millisecond)))
	require.Less(t, asked, updates)
	last := n.catalog.Log().Last()
	for m := r.next(); m.TS < uint64(last) || m.Magic != frame.Heartbeat; m = r.next() {
		if m.Magic == frame.Heartbeat {
			r.ack()
		}
	}
}

// A slave of the original hears after each update that this was all.
func TestASlaveOfTheOriginalHasAHeartbeatBehindEachUpdate(t *testing.T) {
	n := newNode(t, 1)
	r := n.dialFollow(frame.Follow{SID: 2})
	r.atEnd()
	for range 20 {
		n.set(0, "k", "v")
		m := r.next()
		for m.Magic == frame.Heartbeat { // the pause was over
			r.ack()
			m = r.next()
		}
		beat := r.next()
		require.Equal(t, frame.Heartbeat, beat.Magic)
		require.GreaterOrEqual(t, beat.TS, m.TS)
		r.ack()
	}
}

// An update leaves while the disk is still being told what the next heartbeat promises.
func TestUpdatesDoNotWaitForAPromise(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	ahead := new(atomic.Int64)
	n := begin(t, &node{sid: 1, exprs: []string{":"}, oneFile: true, fs: fs, clock: func() time.Time {
		return time.Now().Add(time.Duration(ahead.Load()))
	}})
	n.set(0, "k", "first")
	r := n.dialFollow(frame.Follow{Flags: frame.Extended, SID: 2})
	r.atEnd()
	release, blocked := make(chan struct{}), make(chan struct{})
	fs.OnSync(sync.OnceFunc(func() {
		close(blocked)
		<-release
	}))
	ahead.Add(int64(time.Minute)) // the disk promises ten seconds
	n.set(0, "k", "second")
	<-blocked
	m := r.next()
	for m.Magic == frame.Heartbeat { // it was due before the update
		r.ack()
		m = r.next()
	}
	u, err := ulog.ParseMessage(m.Log)
	require.NoError(t, err)
	require.Equal(t, "second", string(u.Value[len(u.Value)-len("second"):]))
	close(release)
	beat := r.next()
	require.Equal(t, frame.Heartbeat, beat.Magic)
	require.Equal(t, m.TS, beat.TS)
}
