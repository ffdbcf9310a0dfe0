package replication_test

import (
	"encoding/json"
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
	"gotycoon/compat/recordings"
	"gotycoon/ulog"
)

// rawFollower is a connection on which a test plays the follower.
type rawFollower struct {
	net.Conn
	t testing.TB
}

// dial sends a request to a node.
func (n *node) dial(request []byte) *rawFollower {
	n.t.Helper()
	c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", n.port))
	require.NoError(n.t, err)
	n.t.Cleanup(func() { c.Close() })
	require.NoError(n.t, c.SetDeadline(time.Now().Add(patience)))
	_, err = c.Write(request)
	require.NoError(n.t, err)
	return &rawFollower{c, n.t}
}

func (n *node) dialFollow(f frame.Follow) *rawFollower {
	n.t.Helper()
	return n.dial(frame.AppendFollow(nil, f))
}

func (r *rawFollower) take(n int) []byte {
	r.t.Helper()
	p := make([]byte, n)
	_, err := io.ReadFull(r, p)
	require.NoError(r.t, err)
	return p
}

// next reads one message.
func (r *rawFollower) next() frame.Message {
	r.t.Helper()
	m, err := r.tryNext()
	require.NoError(r.t, err)
	return m
}

// tryNext reads one message, or returns why there is none.
func (r *rawFollower) tryNext() (frame.Message, error) {
	r.t.Helper()
	var p []byte
	m, n, err := frame.DecodeMessage(p)
	for err != nil {
		require.ErrorIs(r.t, err, frame.ErrShort)
		more := make([]byte, n-len(p))
		if _, err := io.ReadFull(r, more); err != nil {
			return m, err
		}
		p = append(p, more...)
		m, n, err = frame.DecodeMessage(p)
	}
	return m, nil
}

func (r *rawFollower) ack() {
	r.t.Helper()
	_, err := r.Write([]byte{byte(frame.Ack)})
	require.NoError(r.t, err)
}

func (r *rawFollower) requireEnd() {
	r.t.Helper()
	rest, err := io.ReadAll(r)
	require.NoError(r.t, err)
	require.Empty(r.t, rest)
}

// TestRecordedRequests replays the requests of raw-client on its log: the answer is the same up to
// the first heartbeat.
func TestRecordedRequests(t *testing.T) {
	golden := recordings.Dir(t, "replication")
	var cases []struct {
		Name string
		Args []string
		Case int
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, golden, "raw-client/cases.json")), &cases))
	n := newNode(t, 1)
	n.shut()
	require.NoError(t, n.catalog.Close())
	require.NoError(t, os.RemoveAll(filepath.Join(n.dir, "ulog")))
	require.NoError(t, os.CopyFS(filepath.Join(n.dir, "ulog"), os.DirFS(filepath.Join(golden, "raw-client/ulog"))))
	n.start()
	replayed := 0
	for _, c := range cases {
		request := read(t, golden, fmt.Sprintf("raw-client/case%02d.client.bin", c.Case))[:frame.FollowLen]
		answer := read(t, golden, fmt.Sprintf("raw-client/case%02d.server.bin", c.Case))
		if answer[0] != byte(frame.Replication) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			want := answer[:1+firstHeartbeat(t, answer[1:])]
			r := n.dial([]byte(request))
			got := r.take(len(want))
			require.Equal(t, fmt.Sprintf("%x", want), fmt.Sprintf("%x", got))
			require.Equal(t, frame.Heartbeat, r.next().Magic)
			replayed++
		})
	}
	require.GreaterOrEqual(t, replayed, 15)
}

// firstHeartbeat returns the offset of the first heartbeat in a stream.
func firstHeartbeat(t *testing.T, stream string) (offset int) {
	t.Helper()
	for {
		m, n, err := frame.DecodeMessage([]byte(stream[offset:]))
		if m.Magic == frame.Heartbeat {
			return offset
		}
		require.NoError(t, err)
		offset += n
	}
}

func TestFillersTellHowFarFilteredUpdatesGo(t *testing.T) {
	n := newNode(t, 7)
	var stamps []ulog.Stamp
	for i := range 600 {
		n.set(0, fmt.Sprint(i), "v")
		stamps = append(stamps, n.catalog.Log().Last())
	}
	r := n.dialFollow(frame.Follow{SID: 7})
	require.Equal(t, []byte{byte(frame.Replication)}, r.take(1))
	for _, i := range []int{255, 511} {
		require.Equal(t, frame.Message{Magic: frame.Replication, TS: uint64(stamps[i]), Log: []byte{}}, r.next())
	}
	require.Equal(t, frame.Message{Magic: frame.Heartbeat, TS: uint64(stamps[599])}, r.next())
}

func TestWhiteSID(t *testing.T) {
	n := newNode(t, 7)
	require.NoError(t, n.catalog.DB(0).Replicate(nil, []ulog.Update{setOf(3, 0, "theirs")}, nil, nil))
	n.set(0, "ours", "v")
	for sid, key := range map[uint16]string{7: "ours", 3: "theirs"} {
		r := n.dialFollow(frame.Follow{SID: sid, Flags: frame.WhiteSID})
		r.take(1)
		require.Equal(t, update(sid, 0, ulog.OpSet, key, never+"v"), fmt.Sprintf("%x", r.next().Log))
		require.Equal(t, frame.Heartbeat, r.next().Magic)
	}
}

func TestUpdatesDoNotWaitForTheNextHeartbeat(t *testing.T) {
	n := newNode(t, 7)
	r := n.dialFollow(frame.Follow{SID: 1})
	r.take(1)
	for i := range 50 { // 50 heartbeats would take 5 seconds
		require.Equal(t, frame.Heartbeat, r.next().Magic)
		r.ack()
		n.set(0, fmt.Sprint(i), "v")
		for m := r.next(); m.Magic == frame.Heartbeat; m = r.next() {
			r.ack()
		}
	}
}

// A follower that comes back asks for what is newer than the last heartbeat. Here the clock was
// ahead when it came.
func TestHeartbeatsNeverPassOverAnUpdate(t *testing.T) {
	n := newNode(t, 7)
	n.shut()
	n.now = func() time.Time { return time.Now().Add(time.Hour) }
	n.listen()
	r := n.dialFollow(frame.Follow{SID: 1})
	r.take(1)
	var told uint64
	for i := 0; i < 20; {
		m := r.next()
		if m.Magic == frame.Heartbeat {
			told = max(told, m.TS)
			require.Greater(t, ulog.Stamp(told).Time(), time.Now().Add(time.Hour/2))
			n.set(0, fmt.Sprint(i), "v")
			r.ack()
			continue
		}
		require.Greater(t, m.TS, told)
		i++
	}
}

func TestWrongAcknowledgementEndsTheStream(t *testing.T) {
	n := newNode(t, 7)
	for name, ack := range map[string]string{"wrong byte": "\xb0", "another request": "GET / HTTP/1.1\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			r := n.dialFollow(frame.Follow{TS: 1 << 62})
			r.take(1)
			require.Equal(t, frame.Heartbeat, r.next().Magic)
			_, err := io.WriteString(r, ack)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, r)
			if err != nil {
				require.ErrorContains(t, err, "reset")
			}
		})
	}
}

func TestFollowerThatDoesNotAcknowledge(t *testing.T) {
	n := newNode(t, 7)
	n.timeout = 50 * time.Millisecond
	n.shut()
	n.listen()
	r := n.dialFollow(frame.Follow{TS: 1 << 62, SID: 9})
	r.take(1)
	require.Equal(t, frame.Heartbeat, r.next().Magic)
	r.requireEnd()
	eventually(t, "the line", func() bool { return len(n.log.lines("SYSTEM")) == 2 })
	require.Equal(t, []string{"a slave was connected: ts=4611686018427387904 sid=9", "a slave was disconnected: sid=9"},
		n.log.lines("SYSTEM"))
	require.Empty(t, n.log.lines("ERROR"))
}

func TestStopEndsTheStream(t *testing.T) {
	n := newNode(t, 7)
	r := n.dialFollow(frame.Follow{SID: 1})
	r.take(1)
	require.Equal(t, frame.Heartbeat, r.next().Magic)
	close(n.done)
	r.ack()
	r.requireEnd()
	n.done = make(chan struct{}) // for shut
}

// A follower that does not read costs writers nothing: its connection fills up, and only its own
// goroutine waits.
func TestStalledFollowerDoesNotDelayWriters(t *testing.T) {
	n := newNode(t, 7)
	stalled := n.dialFollow(frame.Follow{SID: 1})
	stalled.take(1)
	value := strings.Repeat("v", 1<<20)
	for i := range 32 { // far more than the buffers of the sockets hold
		n.set(0, fmt.Sprint(i), value)
	}
	n.set(1, "end", "v")
	other := newNode(t, 2)
	other.follow(master(n.port))
	eventually(t, "a follower that reads", func() bool { return other.get(1, "end") == "v" })
}

func TestMissingLogFilesAreReported(t *testing.T) {
	n := newNode(t, 7)
	n.shut()
	require.NoError(t, n.catalog.Close())
	files := filepath.Join(n.dir, "ulog")
	require.NoError(t, os.Rename(filepath.Join(files, "0000000001.ulog"), filepath.Join(files, "0000000003.ulog")))
	n.start()
	n.set(0, "k", "v")
	r := n.dialFollow(frame.Follow{SID: 1, TS: 5})
	require.Equal(t, []byte{byte(frame.Error)}, r.take(1))
	require.Len(t, n.log.lines("ERROR"), 1)
	require.Contains(t, n.log.lines("ERROR")[0], "the slave with sid=1 misses updates, because files of the update log that held some newer "+
		"than ts=5 have been removed: it is refused: give it a copy of the databases")
}
