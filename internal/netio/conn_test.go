package netio_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
)

// pair returns both ends of a connection: one for the code under test, one for the client.
type pair func(t *testing.T) (server, client net.Conn)

func sockets(t *testing.T) (server, client net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	client, err = net.Dial("tcp4", ln.Addr().String())
	require.NoError(t, err)
	server, err = ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { server.Close(); client.Close() })
	return server, client
}

func pipe(t *testing.T) (server, client net.Conn) {
	t.Helper()
	server, client = net.Pipe()
	t.Cleanup(func() { server.Close(); client.Close() })
	return server, client
}

// onBoth runs a test on a socket, which is read with system calls of our own, and on a pipe, which
// is not.
func onBoth(t *testing.T, test func(t *testing.T, p pair)) {
	t.Run("socket", func(t *testing.T) { test(t, sockets) })
	t.Run("pipe", func(t *testing.T) { test(t, pipe) })
}

func newConn(c net.Conn, timeout time.Duration) *netio.Conn {
	return netio.New(c, netio.NewPool(), netio.Options{Timeout: timeout, MaxRequest: 1 << 20})
}

func TestRequestsAndReplies(t *testing.T) {
	onBoth(t, func(t *testing.T, p pair) {
		server, client := p(t)
		c := newConn(server, time.Minute)
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { echo(c); server.Close() })
		for _, size := range []int{1, 100, 16 << 10, 16<<10 + 1, 700 << 10, 3} {
			sent := bytes.Repeat([]byte{byte(size)}, size)
			sent[size-1] = 0
			wg.Go(func() { _, _ = client.Write(sent) })
			got := make([]byte, size)
			_, err := io.ReadFull(client, got)
			require.NoError(t, err)
			require.True(t, bytes.Equal(sent, got), size)
		}
		client.Close()
	})
}

// echo answers requests, which end with a zero byte, with themselves.
func echo(c *netio.Conn) {
	defer c.Close()
	for c.WaitByte() == nil {
		end := bytes.IndexByte(c.Buffered(), 0)
		for end < 0 {
			if c.Fill() != nil {
				return
			}
			end = bytes.IndexByte(c.Buffered(), 0)
		}
		c.Out = append(c.Out, c.Buffered()[:end+1]...)
		c.Advance(end + 1)
	}
}

func TestPipelinedRepliesLeaveTogether(t *testing.T) {
	server, client := net.Pipe() // one Write of the server is one Read of the client
	defer client.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { echo(newConn(server, time.Minute)); server.Close() })
	_, err := client.Write([]byte("a\x00b\x00c\x00"))
	require.NoError(t, err)
	got := make([]byte, 100)
	n, err := client.Read(got)
	require.NoError(t, err)
	require.Equal(t, "a\x00b\x00c\x00", string(got[:n]))
	client.Close()
}

func TestManyPipelinedRepliesDoNotGather(t *testing.T) {
	server, client := sockets(t)
	c := newConn(server, time.Minute)
	_, err := client.Write([]byte("1234"))
	require.NoError(t, err)
	require.NoError(t, c.WaitByte())
	c.Out = append(c.Out, make([]byte, 100<<10)...)
	c.Advance(1)
	require.NoError(t, c.WaitByte())
	require.Empty(t, c.Out)
	require.Equal(t, "234", string(c.Buffered()))
}

func TestFillIsLimitedInTimeAndWaitByteIsNot(t *testing.T) {
	onBoth(t, func(t *testing.T, p pair) {
		server, client := p(t)
		c := newConn(server, 20*time.Millisecond)
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { _, _ = client.Write([]byte("a")) })
		require.NoError(t, c.WaitByte())
		require.ErrorIs(t, c.Fill(), os.ErrDeadlineExceeded)
		c.Advance(1)
		second := time.AfterFunc(60*time.Millisecond, func() { _, _ = client.Write([]byte("b")) })
		defer second.Stop()
		require.NoError(t, c.WaitByte(), "the deadline of Fill must be gone")
		require.Equal(t, "b", string(c.Buffered()))
	})
}

func TestFillRefusesTooMuch(t *testing.T) {
	onBoth(t, func(t *testing.T, p pair) {
		server, client := p(t)
		c := newConn(server, time.Minute)
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { _, _ = client.Write(make([]byte, 2<<20)) })
		err := c.WaitByte()
		for err == nil {
			err = c.Fill()
		}
		require.ErrorIs(t, err, netio.ErrTooLarge)
		require.Len(t, c.Buffered(), 1<<20)
		server.Close()
	})
}

func TestEndOfStream(t *testing.T) {
	onBoth(t, func(t *testing.T, p pair) {
		server, client := p(t)
		c := newConn(server, time.Minute)
		client.Close()
		require.ErrorIs(t, c.WaitByte(), io.EOF)
	})
}

func TestStopEndsAnIdleConnectionAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, p pair) {
		server, _ := p(t)
		c := newConn(server, time.Minute)
		ended := make(chan error)
		go func() { ended <- c.WaitByte() }()
		require.NoError(t, c.Stop(time.Hour))
		select {
		case err := <-ended:
			require.True(t, errors.Is(err, netio.ErrStopped) || errors.Is(err, os.ErrDeadlineExceeded), err)
		case <-time.After(10 * time.Second):
			t.Fatal("still waiting")
		}
	})
}

func TestStopLetsAHalfRequestHaveItsGrace(t *testing.T) {
	onBoth(t, func(t *testing.T, p pair) {
		server, client := p(t)
		c := newConn(server, time.Minute)
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { _, _ = client.Write([]byte("a")) })
		require.NoError(t, c.WaitByte())

		require.NoError(t, c.Stop(time.Hour))
		wg.Go(func() { _, _ = client.Write([]byte("b")) })
		require.NoError(t, c.Fill(), "the deadline meant for an idle connection must not hit a request")
		require.Equal(t, "ab", string(c.Buffered()))

		require.NoError(t, c.Stop(0))
		require.ErrorIs(t, c.Fill(), os.ErrDeadlineExceeded)
		c.Advance(2)
		require.ErrorIs(t, c.WaitByte(), netio.ErrStopped)
	})
}

func TestWritingIsLimitedByProgressNotByLength(t *testing.T) {
	onBoth(t, func(t *testing.T, p pair) {
		server, client := p(t)
		const limit = 2 * time.Second
		c := newConn(server, limit)
		c.Out = make([]byte, 40<<20)
		flushed := make(chan error)
		go func() { flushed <- c.Flush() }()
		for range 40 { // which takes longer than the limit
			n, err := io.CopyN(io.Discard, client, 1<<20)
			require.NoError(t, err)
			require.EqualValues(t, 1<<20, n)
			<-time.After(limit / 30)
		}
		require.NoError(t, <-flushed)

		c.Out = make([]byte, 64<<20) // nobody reads
		require.ErrorIs(t, c.Flush(), os.ErrDeadlineExceeded)
		require.Empty(t, c.Out)
	})
}

func TestServingCostsNoMemory(t *testing.T) {
	server, client := sockets(t)
	c := newConn(server, time.Minute)
	reply := make([]byte, 10)
	request := []byte("request")
	require.LessOrEqual(t, testing.AllocsPerRun(200, func() {
		_, _ = client.Write(request)
		if err := c.WaitByte(); err != nil {
			t.Fatal(err)
		}
		c.Out = append(c.Out, c.Buffered()...)
		c.Advance(len(request))
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
		_, _ = client.Read(reply)
	}), 0.5)
}

// A large request is read in pieces, however much of it is there: the scheduler does not know about
// the read.
func TestReadsAreBounded(t *testing.T) {
	var l netio.Limits
	const size = 8 << 20
	c := sending(t, &l, size)
	defer c.Close()
	require.NoError(t, c.Need(2<<20)) // the buffer is large now
	for have := len(c.Buffered()); have < size; {
		require.NoError(t, c.Fill())
		now := len(c.Buffered())
		require.LessOrEqual(t, now-have, 256<<10)
		have = now
	}
}
