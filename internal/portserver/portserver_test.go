package portserver_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/internal/portserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = 10 * time.Second

func start(t *testing.T, o portserver.Options) *portserver.Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return portserver.Start(l, o)
}

func dial(t *testing.T, s *portserver.Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(limit)))
	return c
}

func echo(_ context.Context, c net.Conn) { _, _ = io.Copy(c, c) }

func TestConnectionsAreServedAndEndWithTheServer(t *testing.T) {
	ended := make(chan error, 1)
	s := start(t, portserver.Options{Serve: func(_ context.Context, c net.Conn) {
		_, err := io.Copy(c, c)
		ended <- err
	}})
	c := dial(t, s)
	_, err := c.Write([]byte("hello\n"))
	require.NoError(t, err)
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", line)
	require.Equal(t, 1, s.Conns())
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
	require.Zero(t, s.Conns())
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestAConnectionThatDoesNotEndIsClosedAfterTheGrace(t *testing.T) {
	inside := make(chan struct{})
	s := start(t, portserver.Options{Grace: time.Millisecond, Serve: func(_ context.Context, c net.Conn) {
		close(inside)
		for {
			if _, err := c.Write(make([]byte, 1<<16)); errors.Is(err, net.ErrClosed) {
				return
			}
		}
	}})
	dial(t, s)
	<-inside
	require.NoError(t, s.Close())
}

func TestConnectionsOverTheLimitAreRefused(t *testing.T) {
	s := start(t, portserver.Options{Serve: echo, MaxConns: 1, Refuse: func(c net.Conn) { _, _ = c.Write([]byte("full\n")) }})
	defer s.Close()
	first := dial(t, s)
	_, err := first.Write([]byte("x"))
	require.NoError(t, err)
	_, err = first.Read(make([]byte, 1))
	require.NoError(t, err)
	text, err := io.ReadAll(dial(t, s))
	require.NoError(t, err)
	require.Equal(t, "full\n", string(text))
	first.Close()
	require.Eventually(t, func() bool { return s.Conns() == 0 }, limit, time.Millisecond)
	again := dial(t, s)
	_, err = again.Write([]byte("y"))
	require.NoError(t, err)
	_, err = again.Read(make([]byte, 1))
	require.NoError(t, err)
}

func TestServeIsToldOfTheStop(t *testing.T) {
	s := start(t, portserver.Options{Serve: func(ctx context.Context, _ net.Conn) { <-ctx.Done() }})
	dial(t, s)
	require.Eventually(t, func() bool { return s.Conns() == 1 }, limit, time.Millisecond)
	require.NoError(t, s.Close())
}
