package counter_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/counter/frame"
	"gotycoon/internal/netio"
	"gotycoon/services/counter"
)

// start runs a server, whose connections rest in loops, until the test ends.
func start(tb testing.TB, o counter.Options) (*counter.Server, string) {
	tb.Helper()
	o.Loops = netio.NewLoops(2) // nil where the system has none
	o.Loops.Use(2)
	tb.Cleanup(o.Loops.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	s := counter.New(o)
	s.Start(l)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s, l.Addr().String()
}

// peer is one connection to a server.
type peer struct {
	net.Conn
	tb     testing.TB
	opaque uint32
}

func dial(tb testing.TB, addr string) *peer {
	tb.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(tb, err)
	tb.Cleanup(func() { c.Close() })
	require.NoError(tb, c.SetDeadline(time.Now().Add(2*limit)))
	return &peer{Conn: c, tb: tb}
}

// reply is a reply as it was received.
type reply struct {
	frame.Header
	body string
}

// call sends a request and returns its only reply.
func (p *peer) call(op frame.Opcode, a frame.Args) reply {
	p.tb.Helper()
	p.opaque++
	_, err := p.Write(frame.AppendRequest(nil, op, p.opaque, a))
	require.NoError(p.tb, err)
	r := p.receive()
	require.Equal(p.tb, p.opaque, r.Opaque)
	return r
}

func (p *peer) receive() reply {
	p.tb.Helper()
	head := make([]byte, frame.HeaderLen)
	_, err := io.ReadFull(p, head)
	require.NoError(p.tb, err)
	h := frame.DecodeHeader(head)
	require.Equal(p.tb, frame.ReplyMagic, h.Magic)
	body := make([]byte, h.Size)
	_, err = io.ReadFull(p, body)
	require.NoError(p.tb, err)
	return reply{h, string(body)}
}

func (p *peer) acquire(name string, n, maximum uint32) frame.Status {
	p.tb.Helper()
	return p.call(frame.Acquire, frame.Args{Resources: n, Maximum: maximum, Name: []byte(name)}).Status
}

func (p *peer) release(name string, n uint32) frame.Status {
	p.tb.Helper()
	return p.call(frame.Release, frame.Args{Resources: n, Name: []byte(name)}).Status
}

// get returns the consumption of a counter, -1 where there is none.
func (p *peer) get(name string) int64 {
	p.tb.Helper()
	r := p.call(frame.Get, frame.Args{Name: []byte(name)})
	if r.Status == frame.NotFound {
		return -1
	}
	require.Equal(p.tb, frame.OK, r.Status)
	n, err := frame.DecodeNumber([]byte(r.body))
	require.NoError(p.tb, err)
	return int64(n)
}

// dump returns all counters: consumption and maximum.
func (p *peer) dump() map[string][2]uint32 {
	p.tb.Helper()
	_, err := p.Write(frame.AppendRequest(nil, frame.Dump, 7, frame.Args{}))
	require.NoError(p.tb, err)
	all := map[string][2]uint32{}
	for {
		r := p.receive()
		require.Equal(p.tb, frame.Header{Magic: frame.ReplyMagic, Op: frame.Dump, Size: r.Size, Opaque: 7}, r.Header)
		if r.Size == 0 {
			return all
		}
		e, err := frame.DecodeEntry([]byte(r.body))
		require.NoError(p.tb, err)
		require.NotContains(p.tb, all, string(e.Name))
		all[string(e.Name)] = [2]uint32{e.Current, e.Maximum}
	}
}

// stats returns the statistics by name.
func (p *peer) stats() map[string]string {
	p.tb.Helper()
	list, err := frame.DecodeStats([]byte(p.call(frame.Stats, frame.Args{}).body))
	require.NoError(p.tb, err)
	byName := map[string]string{}
	for _, s := range list {
		byName[s.Name] = s.Value
	}
	return byName
}
