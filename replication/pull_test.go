package replication_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/compat/recordings"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// fakeMaster is a port on which a test plays the master. It does not answer what a follower asks by
// HTTP.
type fakeMaster struct {
	t         *testing.T
	port      int
	followers chan followed
}

// followed is a connection with the request that came on it.
type followed struct {
	net.Conn
	frame.Follow
}

func newFakeMaster(t *testing.T) *fakeMaster {
	t.Helper()
	socket, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	m := &fakeMaster{t, socket.Addr().(*net.TCPAddr).Port, make(chan followed, 100)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := socket.Accept()
			if err != nil {
				return
			}
			m.take(c)
		}
	})
	t.Cleanup(func() { socket.Close(); serving.Wait() })
	return m
}

func (m *fakeMaster) take(c net.Conn) {
	request := make([]byte, frame.FollowLen)
	_ = c.SetDeadline(time.Now().Add(patience))
	_, err := io.ReadFull(c, request)
	f, _, derr := frame.DecodeFollow(request)
	if err != nil || derr != nil {
		c.Close()
		return
	}
	m.followers <- followed{c, f}
}

// accept waits for the follower and reads its request.
func (m *fakeMaster) accept() (net.Conn, frame.Follow) {
	m.t.Helper()
	select {
	case f := <-m.followers:
		m.t.Cleanup(func() { f.Conn.Close() })
		require.Equal(m.t, frame.Extended, f.Flags)
		f.Flags = 0
		return f.Conn, f.Follow
	case <-time.After(patience):
		m.t.Fatal("no follower has come")
		return nil, frame.Follow{}
	}
}

// send sends messages and waits for the acknowledgement of a heartbeat with a stamp.
func (m *fakeMaster) send(c net.Conn, at ulog.Stamp, messages ...frame.Message) {
	m.t.Helper()
	var out []byte
	for _, message := range append(messages, frame.Message{Magic: frame.Heartbeat, TS: uint64(at)}) {
		out = frame.AppendMessage(out, message)
	}
	_, err := c.Write(out)
	require.NoError(m.t, err)
	requireAck(m.t, c)
}

func requireAck(t *testing.T, c net.Conn) {
	t.Helper()
	ack := make([]byte, 1)
	_, err := io.ReadFull(c, ack)
	require.NoError(t, err)
	require.Equal(t, byte(frame.Ack), ack[0])
}

func message(at ulog.Stamp, u ulog.Update) frame.Message {
	return frame.Message{Magic: frame.Replication, TS: uint64(at), Log: ulog.AppendMessage(nil, &u)}
}

func setOf(sid, dbid uint16, key string) ulog.Update {
	return ulog.Update{SID: sid, DBID: dbid, Op: ulog.OpSet, Key: []byte(key), Value: []byte(never + "v")}
}

func TestFollowerDropsWhatIsNotForIt(t *testing.T) {
	m, b := newFakeMaster(t), newNode(t, 2)
	f, _ := b.follow(master(m.port))
	c, request := m.accept()
	require.Equal(t, frame.Follow{SID: 2}, request)
	_, err := c.Write([]byte{byte(frame.Replication)})
	require.NoError(t, err)
	m.send(c, 50,
		message(10, setOf(2, 0, "own")),
		message(11, setOf(1, 2, "no such database")),
		message(12, setOf(1, 0, "a")),
		frame.Message{Magic: frame.Replication, TS: 13},
		frame.Message{Magic: frame.Replication, TS: 14, Log: []byte{0, 1, 0, 0, byte(ulog.OpSet), 9}},
		frame.Message{Magic: frame.Replication, TS: 15, Log: []byte{0, 1}},
		message(16, ulog.Update{SID: 1, Op: 0xA7, Value: []byte("?")}),
		message(17, setOf(1, 1, "b")),
		message(18, setOf(65535, 0, "c")),
	)
	require.Equal(t, []string{
		update(1, 0, ulog.OpSet, "a", never+"v"),
		update(1, 1, ulog.OpSet, "b", never+"v"),
		update(65535, 0, ulog.OpSet, "c", never+"v"),
	}, b.logged(), "applied before the acknowledgement")
	eventually(t, "the position", func() bool { at, _ := f.Position(); return at == 50 })
	require.Equal(t, []string{
		"an update of the master is left out: invalid message format",
		"an update of the master is left out: invalid message format",
		"an update of the master is left out: 2: invalid operation: unknown operation 0xa7 in an update",
	}, b.log.lines("ERROR"))

	c.Close()
	_, request = m.accept()
	require.Equal(t, frame.Follow{SID: 2, TS: 50}, request)
}

// A follower reads messages however they are cut into packets, and large ones.
func TestMessagesInPieces(t *testing.T) {
	m, b := newFakeMaster(t), newNode(t, 2)
	b.follow(master(m.port))
	c, _ := m.accept()
	large := setOf(1, 0, "large")
	large.Value = append(large.Value, make([]byte, 3<<20)...)
	out := []byte{byte(frame.Replication)}
	for _, u := range []ulog.Update{setOf(1, 0, "a"), large, setOf(1, 1, "b")} {
		out = frame.AppendMessage(out, message(7, u))
	}
	out = frame.AppendMessage(out, frame.Message{Magic: frame.Heartbeat, TS: 8})
	for len(out) > 0 {
		n := min(len(out), 7)
		if len(out) > 1000 && len(out) < 3<<20 {
			n = len(out) - 1000
		}
		_, err := c.Write(out[:n])
		require.NoError(t, err)
		out = out[n:]
	}
	requireAck(t, c)
	require.Len(t, b.get(0, "large"), 3<<20+1)
	require.Equal(t, "v", b.get(1, "b"))
}

func TestMastersThatAreNone(t *testing.T) {
	for name, answer := range map[string]string{"refused": "\xbf", "HTTP": "HTTP/1.1 400", "closed": ""} {
		t.Run(name, func(t *testing.T) {
			m, b := newFakeMaster(t), newNode(t, 2)
			b.follow(master(m.port))
			c, _ := m.accept()
			_, err := io.WriteString(c, answer)
			require.NoError(t, err)
			c.Close()
			eventually(t, "the line", func() bool { return len(b.log.lines("SYSTEM")) == 1 })
			require.Equal(t, []string{fmt.Sprintf("replication was deferred: host=127.0.0.1 port=%d", m.port)},
				b.log.lines("SYSTEM"))
			if name == "refused" {
				eventually(t, "what to do", func() bool { return len(b.log.lines("ERROR")) == 1 })
				require.Contains(t, b.log.lines("ERROR")[0], "refuses to be followed")
			}
		})
	}
	t.Run("garbage in the stream", func(t *testing.T) {
		m, b := newFakeMaster(t), newNode(t, 2)
		f, _ := b.follow(master(m.port))
		c, _ := m.accept()
		_, err := io.WriteString(c, "\xb1\xb0\x00\x00\x00\x00\x00\x00\x00\x09GET /")
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, c)
		if err != nil {
			require.ErrorContains(t, err, "reset")
		}
		at, _ := f.Position()
		require.LessOrEqual(t, at, ulog.Stamp(9))
	})
}

// A follower of a master that says nothing any more can be stopped all the same.
func TestCloseInterruptsEveryWait(t *testing.T) {
	m, b := newFakeMaster(t), newNode(t, 2)
	_, end := b.follow(master(m.port))
	m.accept()
	requireQuick(t, end)

	b2 := newNode(t, 3)
	_, end = b2.follow(master(m.port))
	c, _ := m.accept()
	_, err := c.Write([]byte{byte(frame.Replication)})
	require.NoError(t, err)
	eventually(t, "the stream", func() bool { return len(b2.log.lines("SYSTEM")) == 1 })
	requireQuick(t, end)
}

// requireQuick fails when f takes as long as the time limits of the network.
func requireQuick(t *testing.T, f func()) {
	t.Helper()
	begun := time.Now()
	f()
	require.Less(t, time.Since(begun), patience)
}

// recordedStreams are streams of the original, each with the log that the follower of the time had
// afterwards.
var recordedStreams = []struct {
	name, stream, request string
	sid                   uint16
	log                   string
}{
	{"fresh slave", "fresh-slave/raw.master-to-slave.bin", "fresh-slave/raw.slave-to-master.bin", 2, "fresh-slave/slave-ulog"},
	{"dual master a", "dual-master/A-pulls-from-B.conn0.response.bin", "dual-master/A-pulls-from-B.conn0.request.bin", 1, ""},
	{"dual master b", "dual-master/B-pulls-from-A.conn0.response.bin", "dual-master/B-pulls-from-A.conn0.request.bin", 2, ""},
}

func TestRecordedStreams(t *testing.T) {
	golden := recordings.Dir(t, "replication")
	for _, row := range recordedStreams {
		t.Run(row.name, func(t *testing.T) {
			stream := read(t, golden, row.stream)
			m, b := newFakeMaster(t), newNode(t, row.sid)
			f, _ := b.follow(master(m.port))
			c, request := m.accept()
			require.Equal(t, read(t, golden, row.request)[:frame.FollowLen], string(frame.AppendFollow(nil, request)))

			want, last, heartbeats := decodeStream(t, stream)
			written := make(chan error, 1)
			go func() { _, err := io.WriteString(c, stream); written <- err }()
			acks := make([]byte, heartbeats)
			_, err := io.ReadFull(c, acks)
			require.NoError(t, err)
			require.NoError(t, <-written)
			require.Equal(t, strings.Repeat("\xb1", heartbeats), string(acks))
			eventually(t, "the position", func() bool { at, _ := f.Position(); return at == last })
			require.Equal(t, want, b.logged())
			if row.log != "" {
				own := fmt.Sprintf("%04x", row.sid)
				theirs := slices.DeleteFunc(offline(t, golden, row.log), func(line string) bool { return strings.HasPrefix(line, own) })
				require.Equal(t, theirs, b.logged(), "the log that the original's slave had, without what its clients wrote")
			}
		})
	}
}

func read(t *testing.T, golden, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(golden, name))
	require.NoError(t, err)
	return string(text)
}

// decodeStream returns the updates of a recorded stream, its largest stamp and the number of its
// heartbeats.
func decodeStream(t *testing.T, stream string) (updates []string, last ulog.Stamp, heartbeats int) {
	t.Helper()
	rest := []byte(stream)[1:]
	for len(rest) > 0 {
		m, n, err := frame.DecodeMessage(rest)
		require.NoError(t, err)
		rest = rest[n:]
		last = max(last, ulog.Stamp(m.TS))
		if m.Magic == frame.Heartbeat {
			heartbeats++
		} else {
			updates = append(updates, fmt.Sprintf("%x", m.Log))
		}
	}
	return updates, last, heartbeats
}

// offline returns the updates of a recorded log.
func offline(t *testing.T, golden, name string) []string {
	t.Helper()
	r, err := ulog.OpenReader(vfs.OS{}, filepath.Join(golden, name), 0, ulog.ReaderOptions{})
	require.NoError(t, err)
	defer r.Close()
	return drain(t, r)
}
