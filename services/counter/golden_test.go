package counter

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/counter/frame"
	"gotycoon/internal/netio"
	"gotycoon/services/internal/servicetest"
)

const (
	waitLimit = 20 * time.Second
	silence   = 50 * time.Millisecond // long enough for an answer that must not come
)

// recording is a recorded conversation with the original.
type recording struct {
	Name     string
	Requires []string
	Steps    []recordedStep
}

type recordedStep struct {
	Conn, Op, Opaque string
	Sent             payload
	Received         *payload
	EOF              bool
	Interval         int64
	OffsetMS         int64                `json:"offset_ms"`
	DumpHas          map[string][2]uint32 `json:"dump_has"`
	DumpLacks        []string             `json:"dump_lacks"`
	StatsNames       []string             `json:"stats_names"`
	Dribble          bool
}

// payload is bytes, written in hexadecimal or as a list of ["str", x] and ["rep", x, n].
type payload []byte

func (p *payload) UnmarshalJSON(text []byte) error {
	var whole string
	if json.Unmarshal(text, &whole) == nil {
		return p.add(whole, 1)
	}
	var parts [][]any
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	for _, part := range parts {
		n := 1.0
		if part[0] == "rep" {
			n = part[2].(float64)
		}
		if err := p.add(part[1].(string), int(n)); err != nil {
			return err
		}
	}
	return nil
}

func (p *payload) add(digits string, n int) error {
	data, err := hex.DecodeString(digits)
	*p = append(*p, bytes.Repeat(data, n)...)
	return err
}

// differing are the recordings that are not followed, with the test of what is done instead.
var differing = map[string]string{
	"overflow-32bit-bug": "TestConsumptionDoesNotOverflow",
	"reset-releases":     "TestResetReleasesAtOnce", // the original does so, too, up to a second later
}

// The recordings of the original are the specification.
func TestRecordings(t *testing.T) {
	all := servicetest.ReadCases[recording](t, "counter.jsonl")
	for _, r := range all {
		if differing[r.Name] == "" {
			t.Run(r.Name, func(t *testing.T) { r.play(t, nil) })
			t.Run(r.Name+" in a loop", func(t *testing.T) { r.play(t, netio.NewLoops(1)) })
		}
	}
	require.Len(t, all, 33)
}

// stage is a server with the connections of a conversation.
type stage struct {
	server *Server
	addr   string
	clock  atomic.Int64 // milliseconds since 1970
	conns  map[string]*net.TCPConn
}

func newStage(t *testing.T, requires []string, loops *netio.Loops) *stage {
	st := &stage{conns: map[string]*net.TCPConn{}}
	st.clock.Store(1_800_000_000_000)
	o := Options{Now: func() time.Time { return time.UnixMilli(st.clock.Load()) }}
	o.Loops = loops
	for _, tag := range requires {
		switch tag {
		case "fresh":
		case "counter.stat_interval=10":
			o.StatsInterval = 10 * time.Second
		case "counter.max_connections=3":
			o.MaxConns = 3
		default:
			require.Fail(t, "unknown requirement", tag)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	st.server, st.addr = New(o), l.Addr().String()
	st.server.Start(l)
	t.Cleanup(func() {
		for _, c := range st.conns {
			c.Close()
		}
		require.NoError(t, st.server.Close())
		loops.Close()
	})
	return st
}

func (r *recording) play(t *testing.T, loops *netio.Loops) {
	t.Parallel()
	st := newStage(t, r.Requires, loops)
	for i, step := range r.Steps {
		t.Logf("step %d", i)
		if step.Op == "boundary" {
			st.passBoundary(t, &step)
			continue
		}
		step.play(t, st, st.conn(t, step.Conn))
	}
}

func (st *stage) conn(t *testing.T, name string) *net.TCPConn {
	if st.conns[name] == nil {
		c, err := net.Dial("tcp", st.addr)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(waitLimit)))
		st.conns[name] = c.(*net.TCPConn)
	}
	return st.conns[name]
}

// end closes a connection and waits until the server has noticed.
func (st *stage) end(t *testing.T, name string) {
	before, _ := st.server.Port.Connections()
	require.NoError(t, st.conns[name].Close())
	delete(st.conns, name)
	require.Eventually(t, func() bool {
		open, _ := st.server.Port.Connections()
		return open < before
	}, waitLimit, time.Millisecond)
}

// passBoundary sets the clock behind the next boundary and waits until the server has noticed.
func (st *stage) passBoundary(t *testing.T, step *recordedStep) {
	collections := func() uint64 { return st.server.Stats().Collections }
	require.Eventually(t, func() bool { return collections() > 0 }, waitLimit, time.Millisecond)
	before, interval := collections(), 1000*step.Interval
	st.clock.Store((st.clock.Load()/interval+1)*interval + step.OffsetMS)
	require.Eventually(t, func() bool { return collections() > before }, waitLimit, time.Millisecond)
}

func (step *recordedStep) play(t *testing.T, st *stage, c *net.TCPConn) {
	step.send(t, c)
	switch step.Op {
	case "", "listen":
	case "close":
		st.end(t, step.Conn)
		return
	case "reset":
		require.NoError(t, c.SetLinger(0))
		st.end(t, step.Conn)
		return
	case "half_close":
		require.NoError(t, c.CloseWrite())
	default:
		require.Fail(t, "unknown op", step.Op)
	}
	step.check(t, c)
}

func (step *recordedStep) send(t *testing.T, c net.Conn) {
	size := len(step.Sent)
	if step.Dribble {
		size = 1
	}
	for part := range slices.Chunk(step.Sent, max(1, size)) {
		if _, err := c.Write(part); err != nil {
			require.True(t, step.EOF, "%v", err)
		}
	}
}

func (step *recordedStep) check(t *testing.T, c net.Conn) {
	switch {
	case step.DumpHas != nil:
		step.checkDump(t, c)
	case step.StatsNames != nil:
		require.Equal(t, step.StatsNames, statNames(t, c))
	case step.EOF:
		have, err := io.ReadAll(c)
		if err != nil {
			require.ErrorContains(t, err, "reset")
		}
		require.Equal(t, hex.EncodeToString(*step.Received), hex.EncodeToString(have))
	case len(*step.Received) == 0:
		require.NoError(t, c.SetReadDeadline(time.Now().Add(silence)))
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(waitLimit)))
	default:
		have := make([]byte, len(*step.Received))
		_, err := io.ReadFull(c, have)
		require.NoError(t, err)
		require.Equal(t, hex.EncodeToString(*step.Received), hex.EncodeToString(have))
	}
}

func (step *recordedStep) checkDump(t *testing.T, c net.Conn) {
	have := map[string][2]uint32{}
	for {
		h, body := readReply(t, c)
		require.Equal(t, step.Opaque, hex.EncodeToString(binary.BigEndian.AppendUint32(nil, h.Opaque)))
		require.Equal(t, frame.OK, h.Status)
		if len(body) == 0 {
			break
		}
		e, err := frame.DecodeEntry(body)
		require.NoError(t, err)
		have[string(e.Name)] = [2]uint32{e.Current, e.Maximum}
	}
	for name, amounts := range step.DumpHas {
		require.Equal(t, amounts, have[name], name)
	}
	for _, name := range step.DumpLacks {
		require.NotContains(t, have, name)
	}
}

func statNames(t *testing.T, c net.Conn) (names []string) {
	h, body := readReply(t, c)
	require.Equal(t, frame.OK, h.Status)
	stats, err := frame.DecodeStats(body)
	require.NoError(t, err)
	for _, s := range stats {
		names = append(names, s.Name)
		require.Regexp(t, `\A\d+\z`, s.Value)
	}
	return names
}

func readReply(t *testing.T, r io.Reader) (frame.Header, []byte) {
	t.Helper()
	head := make([]byte, frame.HeaderLen)
	_, err := io.ReadFull(r, head)
	require.NoError(t, err)
	h := frame.DecodeHeader(head)
	require.Equal(t, frame.ReplyMagic, h.Magic)
	body := make([]byte, h.Size)
	_, err = io.ReadFull(r, body)
	require.NoError(t, err)
	return h, body
}
