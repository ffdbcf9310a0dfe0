package replication_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/replication"
	"gotycoon/ulog"
)

func TestAMasterThatFallsSilentIsGivenUp(t *testing.T) {
	m, b := newFakeMaster(t), newNode(t, 2)
	b.silence = 2 * time.Second // a slow test must send the first message within it
	f, _ := b.follow(master(m.port))
	require.EqualValues(t, replication.Unknown, f.Status().Seconds, "never synced")
	c, _ := m.accept()
	_, err := c.Write([]byte{byte(frame.Replication)})
	require.NoError(t, err)
	m.send(c, 50, message(10, setOf(1, 0, "a")))
	_, request := m.accept() // another connection, though the first is open
	require.EqualValues(t, 50, request.TS)
	eventually(t, "the reason", func() bool {
		return strings.Contains(strings.Join(b.log.lines("INFO"), "\n"), "nothing has come from the master for 2s")
	})
}

func TestFollowersAndTheirMasterKnowTheLag(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	f, end := b.follow(replication.Master{})
	require.Equal(t, replication.None, f.Status().State)
	require.Empty(t, a.replicas.List())
	f.Tune("127.0.0.1", a.port, nil, nil)
	a.set(0, "a", "1")
	eventually(t, "both to know", func() bool {
		list, st := a.replicas.List(), f.Status()
		return len(list) == 1 && list[0].Seconds == 0 && list[0].Records == 0 && list[0].Position >= a.catalog.Log().Last() &&
			st.State == replication.Streaming && st.Seconds == 0 && st.Records == 0 && st.Updates == 1
	})
	of := a.replicas.List()[0]
	require.True(t, of.Ours)
	require.Equal(t, replication.Streaming, of.State)
	require.EqualValues(t, 2, of.SID)
	end()
	eventually(t, "the connection to end", func() bool { return len(a.replicas.List()) == 0 })
	a.shut()
	f, _ = b.follow(master(a.port))
	eventually(t, "an attempt", func() bool { st := f.Status(); return st.State == replication.Connecting && st.Trouble != "" })
}

// A follower that takes nothing any more is seen to be behind.
func TestAFollowerThatTakesNothingIsBehind(t *testing.T) {
	a := newNode(t, 1)
	c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", a.port))
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write(frame.AppendFollow(nil, frame.Follow{SID: 9}))
	require.NoError(t, err)
	eventually(t, "it", func() bool { return len(a.replicas.List()) == 1 })
	require.EqualValues(t, replication.Unknown, a.replicas.List()[0].Seconds)
	head := make([]byte, 10)
	_, err = io.ReadFull(c, head)
	require.NoError(t, err)
	_, err = c.Write([]byte{byte(frame.Ack)})
	require.NoError(t, err)
	eventually(t, "that it has everything", func() bool { return a.replicas.List()[0].Seconds == 0 })
	a.set(0, "a", "1")
	eventually(t, "that it lacks something", func() bool { return a.replicas.List()[0].Seconds > 0.01 })
}

// original plays an original master that has removed files of its log: it answers the questions
// about it, and streams.
type original struct {
	*fakeMaster
	first ulog.Stamp // of the oldest update it has
}

func newOriginal(t *testing.T, files string, first ulog.Stamp) *original {
	t.Helper()
	socket, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	o := &original{&fakeMaster{t, socket.Addr().(*net.TCPAddr).Port, make(chan followed, 100)}, first}
	http1 := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/tab-separated-values")
		_, _ = io.WriteString(w, files)
	})}
	asked := make(chan net.Conn)
	served := make(chan error, 1)
	go func() { served <- http1.Serve(&chanListener{socket.Addr(), asked, make(chan struct{})}) }()
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			c, err := socket.Accept()
			if err != nil {
				return
			}
			o.dispatch(c, asked)
		}
	}()
	t.Cleanup(func() { socket.Close(); <-accepted; _ = http1.Close(); <-served })
	return o
}

// dispatch tells a question from a follower by the first byte.
func (o *original) dispatch(c net.Conn, asked chan<- net.Conn) {
	head := make([]byte, 1)
	if _, err := io.ReadFull(c, head); err != nil {
		c.Close()
		return
	}
	if head[0] != byte(frame.Replication) {
		asked <- &prefixed{c, head}
		return
	}
	rest := make([]byte, frame.FollowLen-1)
	_, _ = io.ReadFull(c, rest)
	f, _, err := frame.DecodeFollow(append(head, rest...))
	require.NoError(o.t, err)
	_, _ = c.Write(frame.AppendMessage([]byte{byte(frame.Replication)}, message(max(ulog.Stamp(f.TS)+1, o.first), setOf(1, 0, "first"))))
	if f.Flags&frame.Extended == 0 { // the question what its log begins with
		c.Close()
		return
	}
	_, _ = c.Write(frame.AppendMessage(nil, frame.Message{Magic: frame.Heartbeat, TS: uint64(o.first)}))
	o.t.Cleanup(func() { c.Close() })
}

type prefixed struct {
	net.Conn
	head []byte
}

// Read implements io.Reader.
func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.head) > 0 {
		n := copy(b, p.head)
		p.head = p.head[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// chanListener is a net.Listener of connections that somebody else accepts.
type chanListener struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
}

func (l *chanListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *chanListener) Addr() net.Addr { return l.addr }
func (l *chanListener) Close() error   { close(l.closed); return nil }

func TestGapsOfOriginalMasters(t *testing.T) {
	for _, row := range []struct {
		name, files string
		at, first   ulog.Stamp
		gap         bool
	}{
		{"the first file is there", "/x/0000000001.ulog\t100:900\n", 5, 100, false},
		{"an older file is there", "/x/0000000007.ulog\t100:400\n/x/0000000008.ulog\t100:900\n", 500, 300, false},
		{"within the oldest file", "/x/0000000007.ulog\t100:900\n", 500, 300, false},
		{"before the oldest file", "/x/0000000007.ulog\t100:900\n", 200, 300, true},
		{"from the beginning", "/x/0000000002.ulog\t100:900\n", 0, 300, true},
	} {
		for _, goOn := range []bool{false, true} {
			t.Run(fmt.Sprint(row.name, " ", goOn), func(t *testing.T) {
				o, b := newOriginal(t, row.files, row.first), newNode(t, 2)
				b.set(1, "not empty", "x")
				b.set(0, "not empty", "x")
				writeRTS(t, b, row.at)
				b.gapContinue = goOn
				f, _ := b.follow(master(o.port))
				if row.gap && !goOn {
					eventually(t, "the state", func() bool { return f.Status().State == replication.Gap })
					require.Empty(t, b.get(0, "first"))
					require.Contains(t, f.Status().Trouble, "-gap-continue")
					require.Contains(t, strings.Join(b.log.lines("ERROR"), "\n"), "-gap-continue")
					return
				}
				eventually(t, "the stream", func() bool { return b.get(0, "first") != "" })
			})
		}
	}
}

// What was true of one master is not said of the next.
func TestLagAfterTuning(t *testing.T) {
	a, b, m := newNode(t, 1), newNode(t, 2), newFakeMaster(t)
	f, _ := b.follow(master(a.port))
	eventually(t, "all to be here", func() bool { st := f.Status(); return st.State == replication.Streaming && st.Seconds == 0 })
	f.Tune("127.0.0.1", m.port, nil, nil)
	require.NotZero(t, f.Status().Seconds)
	c, _ := m.accept()
	require.NotZero(t, f.Status().Seconds)
	require.True(t, f.Status().Contact.IsZero())
	_, err := c.Write([]byte{byte(frame.Replication)})
	require.NoError(t, err)
	m.send(c, 50, message(10, setOf(1, 0, "a")))
	eventually(t, "all to be here", func() bool { return f.Status().Records == 0 })
	_, err = c.Write(frame.AppendMessage(nil, message(60, setOf(1, 0, "b"))))
	require.NoError(t, err)
	eventually(t, "nobody to know whether there is more", func() bool { return f.Status().Records == replication.Unknown })
}
