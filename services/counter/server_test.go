package counter_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/counter/frame"
	"gotycoon/services"
	"gotycoon/services/counter"
)

func TestConsumptionDoesNotOverflow(t *testing.T) {
	_, addr := start(t, counter.Options{})
	a, b := dial(t, addr), dial(t, addr)
	require.Equal(t, frame.OK, a.acquire("n", math.MaxUint32, math.MaxUint32))
	require.Equal(t, frame.NotAvailable, b.acquire("n", 1, math.MaxUint32))
	require.Equal(t, frame.NotAcquired, b.release("n", 1))
	require.EqualValues(t, math.MaxUint32, b.get("n"))
	require.Equal(t, frame.OK, a.release("n", math.MaxUint32))
	require.Zero(t, b.get("n"))
}

func TestResetReleasesAtOnce(t *testing.T) {
	_, addr := start(t, counter.Options{})
	a, b := dial(t, addr), dial(t, addr)
	require.Equal(t, frame.OK, b.acquire("n", 4, 4))
	require.NoError(t, b.Conn.(*net.TCPConn).SetLinger(0))
	require.NoError(t, b.Close())
	require.Eventually(t, func() bool { return a.get("n") == 0 }, limit, time.Millisecond)
}

func TestACounterThatHasNoRoomIsRefused(t *testing.T) {
	_, addr := start(t, counter.Options{MaxMemory: 150}) // 64 and the name for each
	c := dial(t, addr)
	require.Equal(t, frame.OK, c.acquire("one", 1, 9))
	require.Equal(t, frame.OK, c.acquire("two", 1, 9))
	r := c.call(frame.Acquire, frame.Args{Resources: 1, Maximum: 9, Name: []byte("three")})
	require.Equal(t, frame.OutOfMemory, r.Status)
	require.Equal(t, "OutOfMemory", r.body)
	require.Equal(t, frame.OK, c.acquire("two", 1, 9), "there is room for the ones there are")
	require.Equal(t, "2", c.stats()["total_objects"])
}

// What many connections have of the same counters has a limit, too.
func TestHoldingsHaveALimit(t *testing.T) {
	const counters = 2000 // of 70 bytes, and 48 KiB for each connection that has them all
	s, addr := start(t, counter.Options{MaxMemory: 300_000})
	last := func(p *peer) (status frame.Status) {
		for i := range counters {
			status = p.acquire(fmt.Sprintf("c-%04d", i), 1, 100)
		}
		return status
	}
	first := dial(t, addr)
	for _, p := range []*peer{first, dial(t, addr), dial(t, addr)} {
		require.Equal(t, frame.OK, last(p))
	}
	late := dial(t, addr)
	require.Equal(t, frame.OutOfMemory, last(late))
	require.Equal(t, frame.OK, late.acquire("c-0000", 1, 100), "what it has already it may have more of")
	require.NoError(t, first.Close())
	require.Eventually(t, func() bool { return s.Stats().Connections == 3 }, limit, time.Millisecond)
	require.Equal(t, frame.OK, last(late))
}

func TestCollectionMakesRoom(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	_, addr := start(t, counter.Options{MaxMemory: 70, StatsInterval: time.Minute, Now: clock})
	c := dial(t, addr)
	require.Equal(t, frame.OK, c.acquire("a", 1, 1))
	require.Equal(t, frame.OK, c.release("a", 1))
	require.Eventually(t, func() bool { return c.stats()["gc_count"] == "1" }, limit, time.Millisecond)
	require.Equal(t, "1", c.stats()["objects"])
	require.Equal(t, "65", c.stats()["used_memory"])
	require.Equal(t, frame.OutOfMemory, c.acquire("b", 1, 1))
	mu.Lock()
	now = now.Add(-time.Minute) // a clock that is set back is as good
	mu.Unlock()
	require.Eventually(t, func() bool { return c.acquire("b", 1, 1) == frame.OK }, limit, time.Millisecond)
	require.EqualValues(t, -1, c.get("a"))
}

func TestStatistics(t *testing.T) {
	s, addr := start(t, counter.Options{Buckets: 1})
	a, b := dial(t, addr), dial(t, addr)
	require.Equal(t, frame.OK, a.acquire("x", 1, 1))
	require.Equal(t, frame.OK, a.acquire("yy", 1, 1))
	require.Equal(t, frame.NotAvailable, b.acquire("x", 1, 1))
	require.Equal(t, frame.InvalidArguments, b.acquire("x", 2, 1))
	require.Equal(t, frame.NotAcquired, b.release("x", 1))
	require.Equal(t, frame.UnknownCommand, b.call(0x7f, frame.Args{}).Status)
	a.call(frame.Noop, frame.Args{})
	a.dump()
	require.Eventually(t, func() bool { return s.Stats().Collections == 1 }, limit, time.Millisecond)
	have := b.stats()
	delete(have, "last_gc_elapsed")
	delete(have, "total_gc_elapsed")
	require.Equal(t, map[string]string{
		"objects": "2", "total_objects": "2", "used_memory": "131", "conflicts": "1", "gc_count": "1",
		"curr_connections": "2", "total_connections": "2", "command:noop": "1", "command:get": "0", "command:acquire": "3",
		"command:release": "1", "command:stats": "1", "command:dump": "1",
	}, have)
}

// A client that asks for much and takes nothing is cut off; until then nobody waits for it.
func TestAClientThatDoesNotReadHoldsNobody(t *testing.T) {
	s, addr := start(t, counter.Options{Options: services.Options{Timeout: 3 * time.Second}})
	c := dial(t, addr)
	for i := range 300 { // names that make a dump of 20 MB
		require.Equal(t, frame.OK, c.acquire(fmt.Sprintf("%0*d", frame.MaxName, i), 1, 1))
	}
	bad := make([]*peer, 20)
	for i := range bad {
		bad[i] = dial(t, addr)
		require.Equal(t, frame.OK, bad[i].acquire("held", 1, 100))
		_, err := bad[i].Write(frame.AppendRequest(nil, frame.Dump, 1, frame.Args{}))
		require.NoError(t, err)
	}
	require.Equal(t, frame.OK, c.acquire("x", 1, 1))
	require.Equal(t, frame.OK, c.release("x", 1))
	require.Len(t, dial(t, addr).dump(), 302)
	require.Eventually(t, func() bool { return s.Stats().Connections == 2 }, limit, time.Millisecond)
	require.Zero(t, c.get("held"))
}

func TestAFloodWithoutReadingIsBounded(t *testing.T) {
	s, addr := start(t, counter.Options{Options: services.Options{Timeout: 100 * time.Millisecond}})
	c := dial(t, addr)
	requests := bytes.Repeat(frame.AppendRequest(nil, frame.Stats, 1, frame.Args{}), 10_000)
	var err error
	for err == nil {
		_, err = c.Write(requests)
	}
	require.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE), "%v", err)
	require.Eventually(t, func() bool { return s.Stats().Connections == 0 }, limit, time.Millisecond)
}

// The same where replies leave because the next request has not come whole, which it may take any
// time for.
func TestAClientThatNeitherReadsNorGoesOnIsCutOff(t *testing.T) {
	s := counter.New(counter.Options{Options: services.Options{Timeout: 50 * time.Millisecond}})
	l := pipes(make(chan net.Conn))
	s.Start(l)
	defer func() { require.NoError(t, s.Close()) }()
	theirs, ours := net.Pipe() // nothing is sent before somebody reads
	defer ours.Close()
	l <- theirs
	request := frame.AppendRequest(nil, frame.Noop, 1, frame.Args{})
	_, err := ours.Write(append(request, request[:5]...))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Stats().TotalConnections == 1 && s.Stats().Connections == 0 }, limit, time.Millisecond)
}

// pipes is a listener whose connections are put into it.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { close(p); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// An incomplete request may take longer than the time limit of the other direction.
func TestAnIncompleteRequestHasNoTimeLimit(t *testing.T) {
	_, addr := start(t, counter.Options{Options: services.Options{Timeout: 20 * time.Millisecond}})
	c := dial(t, addr)
	require.Equal(t, frame.OK, c.acquire("n", 1, 1))
	request := frame.AppendRequest(nil, frame.Get, 1, frame.Args{Name: []byte("n")})
	_, err := c.Write(request[:13])
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, c.SetDeadline(time.Now().Add(limit)))
	_, err = c.Write(request[13:])
	require.NoError(t, err)
	require.Equal(t, "\x00\x00\x00\x01", c.receive().body)
}

func TestALongBodyIsReadOverAndKeepsItsMeaning(t *testing.T) {
	_, addr := start(t, counter.Options{})
	c := dial(t, addr)
	request := frame.AppendRequest(nil, frame.Acquire, 5, frame.Args{Resources: 3, Maximum: 4, Name: []byte("n")})
	const more = 3 << 20
	request[5] += more >> 16 // of the body's length
	_, err := c.Write(append(request, make([]byte, more-1)...))
	require.NoError(t, err)
	require.EqualValues(t, -1, dial(t, addr).get("n"), "it is not complete")
	_, err = c.Write([]byte{0})
	require.NoError(t, err)
	require.Equal(t, "\x00\x00\x00\x03", c.receive().body)
	require.EqualValues(t, 3, c.get("n"))
}

func TestCloseEndsConnectionsAndSaysNothing(t *testing.T) {
	var log bytes.Buffer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := counter.New(counter.Options{Options: services.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
	s.Start(l)
	idle, partial := dial(t, l.Addr().String()), dial(t, l.Addr().String())
	require.Equal(t, frame.OK, idle.acquire("n", 1, 1))
	_, err = partial.Write([]byte{frame.RequestMagic})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	for _, c := range []*peer{idle, partial} {
		_, err = c.Read(make([]byte, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	}
	require.Empty(t, log.String())
	require.NoError(t, counter.New(counter.Options{}).Close(), "one that was never started")
}

func TestAnAbsurdRequestIsLogged(t *testing.T) {
	var log bytes.Buffer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := counter.New(counter.Options{Options: services.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
	s.Start(l)
	c := dial(t, l.Addr().String())
	go func() { // ends with the connection
		_, _ = c.Write(append(frame.AppendHeader(nil, frame.Header{Magic: frame.RequestMagic, Size: math.MaxUint32}), make([]byte, 40<<20)...))
	}()
	_, err = io.ReadAll(c)
	if err != nil {
		require.ErrorIs(t, err, syscall.ECONNRESET)
	}
	require.NoError(t, s.Close())
	require.Contains(t, log.String(), "request over 30 MiB")
}

// That a client speaks HTTP or TLS here is in the log: the recorded original does not answer.
func TestOtherProtocolsAreLogged(t *testing.T) {
	var log bytes.Buffer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := counter.New(counter.Options{Options: services.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
	s.Start(l)
	for _, head := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01"} {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = c.Write([]byte(head))
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		_, _ = io.ReadAll(c) // to the end of the connection
		require.NoError(t, c.Close())
	}
	require.NoError(t, s.Close())
	require.Contains(t, log.String(), "sends an HTTP request: this port speaks the protocol of counters, not HTTP")
	require.Contains(t, log.String(), "speaks TLS: this port speaks the protocol of counters without TLS")
}
