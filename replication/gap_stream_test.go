package replication_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/replication"
	"gotycoon/ulog"
)

// hole writes updates while the follower's stream stands still, and removes the files that hold
// them behind the log's back. The newest file begins with what begin writes. It returns the stamp
// of the last update that is gone.
func (n *node) hole(begin func()) (lost ulog.Stamp) {
	n.t.Helper()
	n.set(0, "big", strings.Repeat("x", 8<<20)) // more than sockets hold
	dir := filepath.Join(n.dir, "ulog")
	files := func() []string {
		list, err := filepath.Glob(filepath.Join(dir, "*.ulog"))
		require.NoError(n.t, err)
		return list
	}
	full := func() bool {
		list, err := n.catalog.Log().Files()
		require.NoError(n.t, err)
		return list[len(list)-1].Size >= n.logLimit()
	}
	for i, segments := 0, len(files()); len(files()) < segments+3 || !full(); i++ {
		n.set(0, fmt.Sprintf("lost %04d", i), "acknowledged")
	}
	lost = n.catalog.Log().Last()
	begin()
	list := files()
	for _, name := range list[:len(list)-1] {
		require.NoError(n.t, os.Remove(name))
	}
	return lost
}

// patient has the node wait long for followers that take nothing.
func (n *node) patient() {
	n.t.Helper()
	n.shut()
	n.timeout = 2 * time.Minute
	n.listen()
}

// tick takes a stamp, as snapshots and hot backups do.
func (n *node) tick() {
	n.t.Helper()
	at := n.catalog.Log().Tick()
	require.NoError(n.t, n.catalog.Log().Wait(at))
}

// note writes a position into the log without an update.
func (n *node) note() {
	n.t.Helper()
	log := n.catalog.Log()
	at, err := log.AppendReplicated(nil, &ulog.Position{State: []byte("state")})
	require.NoError(n.t, err)
	require.NoError(n.t, log.Wait(at))
}

// Updates that are removed while a follower is slow are never passed over, whatever the newest file
// of the log begins with: a follower of our kind fetches a copy.
func TestUpdatesRemovedFromUnderAStream(t *testing.T) {
	begins := map[string]func(*node){"an update": func(n *node) { n.set(1, "new", "1") }, "a tick": (*node).tick, "a note": (*node).note}
	for name, begin := range begins {
		t.Run(name, func(t *testing.T) {
			a, b := newNode(t, 1), newNode(t, 2)
			a.patient()
			a.set(0, "old", "1")
			way := newGate(t, a.port)
			f, _ := b.follow(master(way.port))
			caughtUp(t, f, a)
			way.shut.Lock()
			a.hole(func() { begin(a) })
			way.shut.Unlock()
			eventually(t, "a copy", func() bool { return f.Status().State == replication.Streaming && b.get(0, "lost 0000") != "" })
			a.set(0, "after", "1")
			eventually(t, "the update after the copy", func() bool { return b.get(0, "after") != "" })
			requireEqualContents(t, a, b)
			require.Contains(t, strings.Join(a.log.lines("ERROR"), "\n"), "the slave with sid=2 misses updates")
			require.Contains(t, strings.Join(b.log.lines("ERROR"), "\n"), "the master has not kept the updates")
		})
	}
}

// An original slave cannot be told of a gap. Its stream ends in front of the gap, no heartbeat
// names a stamp behind it, and the slave is refused when it comes back.
func TestOriginalSlaveIsCutOffInFrontOfAGap(t *testing.T) {
	for name, begin := range map[string]func(*node){"a tick": (*node).tick, "an update": func(n *node) { n.set(1, "new", "1") }} {
		t.Run(name, func(t *testing.T) {
			a := newNode(t, 1)
			a.patient()
			r := a.dialFollow(frame.Follow{SID: 2})
			require.NoError(t, r.Conn.(*net.TCPConn).SetReadBuffer(64<<10))
			r.take(1)
			for m := r.next(); m.Magic != frame.Heartbeat; m = r.next() {
				require.NotEmpty(t, m.Log)
			}
			r.ack()
			lost := a.hole(func() { begin(a) })
			var last uint64
			for {
				m, err := r.tryNext()
				if err != nil {
					require.ErrorIs(t, err, io.EOF)
					break
				}
				require.Less(t, m.TS, uint64(lost), "told of what it has not got")
				last = max(last, m.TS)
				if m.Magic == frame.Heartbeat {
					r.ack()
				}
			}
			require.Contains(t, strings.Join(a.log.lines("ERROR"), "\n"), "the slave with sid=2 misses updates")
			require.Contains(t, strings.Join(a.log.lines("ERROR"), "\n"), "is cut off: give it a copy")

			for range 3 {
				again := a.dialFollow(frame.Follow{SID: 2, TS: last})
				require.Equal(t, []byte{byte(frame.Error)}, again.take(1))
				again.requireEnd()
			}
			eventually(t, "the line", func() bool {
				return strings.Contains(strings.Join(a.log.lines("ERROR"), "\n"), "is refused: give it a copy")
			})
			require.Len(t, a.log.lines("ERROR"), 2, "one line a minute")
			// The stamp of a copy.
			whole := a.dialFollow(frame.Follow{SID: 2, TS: uint64(a.catalog.Log().Last())})
			require.Equal(t, []byte{byte(frame.Replication)}, whole.take(1))
		})
	}
}

// Programs that print what is left of a log are no slaves.
func TestWhoAsksForWhatIsLeftGetsIt(t *testing.T) {
	a := newNode(t, 1)
	a.fillAndForget(3000)
	for name, f := range map[string]frame.Follow{
		"from the beginning": {SID: 2}, "without a server ID": {TS: 5}, "one server's": {TS: 5, SID: 1, Flags: frame.WhiteSID},
		"what is left": {TS: 5, SID: 2, Flags: frame.Remaining},
	} {
		t.Run(name, func(t *testing.T) {
			r := a.dialFollow(f)
			r.take(1)
			require.NotEmpty(t, r.next().Log)
		})
	}
	require.Contains(t, a.log.lines("ERROR")[0], "goes on with what is left")
}

// A segment that cannot be read is a gap for the followers that need it: they get copies, and do
// not come back for ever. The log says what is wrong with which file.
func TestFollowersThatNeedADamagedSegmentGetCopies(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"emptied":      func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) },
		"cut off":      func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 100)) },
		"head damaged": func(t *testing.T, path string) { overwrite(t, path, 0) },
		"body damaged": func(t *testing.T, path string) { overwrite(t, path, 2000) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newFileNode(t, 1, ""), newFileNode(t, 2, "")
			f, end := b.follow(master(a.port))
			a.set(0, "first", "1")
			caughtUp(t, f, a)
			end()
			for i := range 1000 {
				a.set(0, fmt.Sprintf("key %05d", i), strings.Repeat("v", 50))
			}
			files, err := a.catalog.LogFiles()
			require.NoError(t, err)
			require.Greater(t, len(files), 3)
			require.NoError(t, b.restart())
			a.shut()
			require.NoError(t, a.catalog.Close())
			spoil(t, files[len(files)/2].Path)
			a.start()
			f, _ = b.follow(master(a.port))
			a.set(0, "last", "1")
			eventually(t, "everything", func() bool { return b.get(0, "last") != "" && f.Status().State == replication.Streaming })
			requireEqualContents(t, a, b)
			require.Contains(t, strings.Join(b.log.lines("INFO"), "\n"), "fetching a copy")
			var said []string
			for _, line := range a.log.lines("ERROR") {
				if strings.Contains(line, filepath.Base(files[len(files)/2].Path)) {
					said = append(said, line)
				}
			}
			require.Len(t, said, 1)
		})
	}
}

// overwrite puts nonsense into a file.
func overwrite(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("nonsense"), at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// What a follower has received already may be damaged: it asks for that once more to see that the
// master still has it, and needs no copy.
func TestAFollowerThatHasADamagedSegmentNeedsNoCopy(t *testing.T) {
	a, b := newFileNode(t, 1, ""), newFileNode(t, 2, "")
	f, end := b.follow(master(a.port))
	for i := range 500 {
		a.set(0, fmt.Sprintf("key %05d", i), strings.Repeat("v", 50))
	}
	caughtUp(t, f, a)
	files, err := a.catalog.LogFiles()
	require.NoError(t, err)
	// With nothing for the follower.
	for newer := files; len(newer) < len(files)+2; newer, err = a.catalog.LogFiles() {
		require.NoError(t, err)
		a.note()
	}
	caughtUp(t, f, a)
	end()
	require.NoError(t, b.restart())
	a.shut()
	require.NoError(t, a.catalog.Close())
	overwrite(t, files[len(files)-1].Path, 200)
	a.start()
	f, _ = b.follow(master(a.port))
	a.set(0, "last", "1")
	eventually(t, "the update", func() bool { return b.get(0, "last") != "" && f.Status().State == replication.Streaming })
	requireEqualContents(t, a, b)
	require.NotContains(t, strings.Join(b.log.lines("INFO"), "\n"), "fetching a copy")
}
