package replication_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/replication"
)

func (n *node) logs(kind, text string) bool {
	return strings.Contains(strings.Join(n.log.lines(kind), "\n"), text)
}

// A master that has fewer databases cannot give copies of the others.
func TestEmptyMemoryThatTheMasterHasNot(t *testing.T) {
	a, b := newNode(t, 1, ":"), newNode(t, 2, ":", "%", "*")
	f, end := b.follow(master(a.port))
	a.set(0, "a", "1")
	caughtUp(t, f, a)
	end()
	require.NoError(t, b.restart())
	f, _ = b.follow(master(a.port))
	eventually(t, "the copy", func() bool { return f.Status().State == replication.Streaming && b.get(0, "a") == "1" })
	a.set(0, "b", "1")
	eventually(t, "what comes later", func() bool { return b.get(0, "b") == "1" })
}

// A copy that was begun from one master is not gone on with from another.
func TestCopyFromAnotherMasterBeginsAnew(t *testing.T) {
	tree := func() string { return filepath.Join(t.TempDir(), "a.kct") }
	a, b, c := newNode(t, 1, tree()), newNode(t, 2, tree()), newNode(t, 3, tree())
	for i := range 4000 {
		a.set(0, fmt.Sprintf("key %05d", i), strings.Repeat("a", 40))
		c.set(0, fmt.Sprintf("key %05d", i), strings.Repeat("c", 40))
	}
	a.forget()
	var connections atomic.Int64
	way := newCutter(t, a.port, func() int64 {
		if connections.Add(1) > 2 { // the stream, the copy
			return 0
		}
		return 90_000
	})
	f, _ := b.follow(master(way.port))
	eventually(t, "the copy to break", func() bool { return b.logs("SYSTEM", "is tried again, since it has ended early") })
	require.NotEmpty(t, b.get(0, "key 00000"))
	f.Tune("127.0.0.1", c.port, nil, nil)
	c.set(0, "end", "x")
	eventually(t, "the end", func() bool { return f.Status().State == replication.Streaming && b.get(0, "end") == "x" })
	requireEqualContents(t, c, b)
	require.True(t, b.logs("INFO", "is complete up to"))
}

// A follower knows what it has of a master, whatever the clock there says now, and says when the
// master has lost some.
func TestMasterWithAnEarlierClock(t *testing.T) {
	a, b := newNode(t, 1, filepath.Join(t.TempDir(), "a.kct")), newNode(t, 2)
	ulogs, then := filepath.Join(a.dir, "ulog"), filepath.Join(t.TempDir(), "ulog")
	a.set(0, "a", "1")
	a.shut()
	require.NoError(t, a.catalog.Close())
	require.NoError(t, os.CopyFS(then, os.DirFS(ulogs)))
	a.start()
	f, end := b.follow(master(a.port))
	a.set(0, "b", "1")
	caughtUp(t, f, a)
	eventually(t, "a heartbeat", func() bool { return f.Status().Seconds == 0 })
	end()
	f, end = b.follow(master(a.port))
	eventually(t, "a heartbeat", func() bool { return f.Status().Seconds == 0 })
	end()
	require.Empty(t, b.log.lines("ERROR"))

	a.shut()
	require.NoError(t, a.catalog.Close())
	a.clock = func() time.Time { return time.Now().Add(-time.Hour) }
	a.start()
	a.set(0, "c", "1")
	f, _ = b.follow(master(a.port))
	eventually(t, "what was made an hour earlier", func() bool { return b.get(0, "c") == "1" })

	a.shut()
	require.NoError(t, a.catalog.Close())
	require.NoError(t, os.RemoveAll(ulogs))
	require.NoError(t, os.CopyFS(ulogs, os.DirFS(then)))
	require.NoError(t, os.Remove(a.exprs[0])) // its checkpoint is newer
	a.start()
	eventually(t, "the state", func() bool { return f.Status().State == replication.Parted })
	eventually(t, "a refusal", func() bool {
		return b.logs("ERROR", "the master has lost updates that this server has from it: the log of server 1 ends at")
	})
}

// Files of the log that go while a follower is behind leave a gap, too.
func TestGapInTheMiddleIsFilledWithACopy(t *testing.T) {
	a, b := newNode(t, 1, ":"), newNode(t, 2, "%")
	for i := range 2000 {
		a.set(0, fmt.Sprintf("key %05d", i), strings.Repeat("v", 20))
	}
	require.NoError(t, os.Remove(filepath.Join(a.dir, "ulog", "0000000002.ulog")))
	f, _ := b.follow(master(a.port))
	a.set(0, "live", "1")
	eventually(t, "the copy", func() bool { return f.Status().State == replication.Streaming && b.get(0, "live") == "1" })
	requireEqualContents(t, a, b)
	require.True(t, a.logs("ERROR", "have been removed: it will fetch a copy"))
	require.True(t, b.logs("ERROR", "the master has not kept the updates"))

	// A slave of the original gets what is in front of the gap.
	r := a.dialFollow(frame.Follow{SID: 9})
	r.take(1)
	var err error
	for m := r.next(); err == nil; m, err = r.tryNext() {
		require.Equal(t, frame.Replication, m.Magic, "no heartbeat")
	}
	require.Equal(t, io.EOF, err)
	require.True(t, a.logs("ERROR", "it is cut off: give it a copy"))
}

// A database that is added to a slave gets what the master has had in it for long.
func TestNewDatabaseIsFilledWithACopy(t *testing.T) {
	old, added := filepath.Join(t.TempDir(), "a.kct"), filepath.Join(t.TempDir(), "b.kct")
	a, b := newNode(t, 1, ":", ":"), newNode(t, 2, old)
	f, end := b.follow(master(a.port))
	a.set(1, "b", "1")
	a.set(0, "a", "1")
	caughtUp(t, f, a)
	end()
	b.exprs = []string{old, added}
	require.NoError(t, b.restart())
	b.follow(master(a.port))
	eventually(t, "the copy", func() bool { return b.get(1, "b") == "1" })
}

func TestAMasterThatRefuses(t *testing.T) {
	m, b := newFakeMaster(t), newNode(t, 2)
	f, _ := b.follow(master(m.port))
	c, _ := m.accept()
	_, err := c.Write([]byte{byte(frame.Error)})
	require.NoError(t, err)
	eventually(t, "the reason", func() bool { return b.logs("ERROR", "the master refuses to be followed: it has no update log (-ulog)") })
	require.Contains(t, f.Status().Trouble, "-ulog")
}
