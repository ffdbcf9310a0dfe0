package replication_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/replication"
)

// limitedCopy begins a follower that needs a copy of size bytes and more, and may fetch so many per
// second.
func limitedCopy(t *testing.T, size int, limit int64) (a, b *node, f *replication.Follower) {
	t.Helper()
	a, b = newNode(t, 1, ":"), newNode(t, 2, ":")
	a.set(0, "old", "1")
	f, end := b.follow(master(a.port))
	caughtUp(t, f, a)
	end()
	rnd, value := rand.NewChaCha8([32]byte{}), make([]byte, 1<<10)
	for i := range size >> 10 {
		_, _ = rnd.Read(value) // never fails
		a.set(0, fmt.Sprint("random ", i), string(value))
	}
	a.fillAndForget(3000)
	f, err := replication.OpenFollower(replication.FollowerOptions{
		Catalog: b.catalog, SID: b.sid, RTS: b.rts(), Master: master(a.port), CopyLimit: limit, Logger: b.log.logger(),
	})
	require.NoError(t, err)
	return a, b, f
}

// A copy takes the time that -copy-limit gives it, at least, and is as good as any.
func TestCopyKeepsToItsLimit(t *testing.T) {
	t.Parallel()
	const size, limit = 96 << 10, 128 << 10 // and the 3000 records
	a, b, f := limitedCopy(t, size, limit)
	begun := time.Now()
	f.Start()
	defer func() { require.NoError(t, f.Close()) }()
	eventually(t, "the copy", func() bool { return f.Status().State == replication.Streaming && b.get(0, "key 02999") != "" })
	require.GreaterOrEqual(t, time.Since(begun), size*time.Second/limit*9/10)
	requireEqualContents(t, a, b)
}

// A copy that waits for its limit does not hold up a server that ends.
func TestCloseEndsACopyThatWaits(t *testing.T) {
	t.Parallel()
	_, b, f := limitedCopy(t, 96<<10, 16)
	f.Start()
	eventually(t, "the copy", func() bool { return f.Status().State == replication.Copying })
	begun := time.Now()
	require.NoError(t, f.Close())
	require.Less(t, time.Since(begun), time.Minute, "the whole copy would take hours")
	require.Empty(t, b.get(0, "key 02999"))
}
