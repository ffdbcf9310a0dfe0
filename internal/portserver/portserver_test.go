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

	"gotycoon/internal/freeport"
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

// shaking is a listener whose connections have to be opened: the client sends "open".
type shaking struct{ net.Listener }

func (l shaking) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &shaken{c}, err
}

type shaken struct{ net.Conn }

func (s *shaken) Open() (net.Conn, error) {
	word := make([]byte, 4)
	if _, err := io.ReadFull(s.Conn, word); err != nil || string(word) != "open" {
		return nil, errors.New("no")
	}
	return s.Conn, nil
}

func TestConnectionsAreOpenedFirst(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := portserver.Start(shaking{l}, portserver.Options{Serve: func(_ context.Context, c net.Conn) { _, _ = c.Write([]byte("hello")) }})
	dial(t, s) // says nothing, and holds up nobody
	for word, want := range map[string]string{"open": "hello", "shut": ""} {
		c := dial(t, s)
		_, err := io.WriteString(c, word)
		require.NoError(t, err)
		text, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.NoError(t, s.Close())
}

// talker is a session of our own: it echoes until it is stopped, and says goodbye.
type talker struct {
	conn net.Conn
	cut  chan struct{}
}

func (s *talker) Serve(ctx context.Context, ended func()) {
	defer ended()
	defer s.conn.Close()
	_, _ = io.Copy(s.conn, s.conn)
	select {
	case <-ctx.Done():
		_, _ = io.WriteString(s.conn, "bye")
		<-s.cut
	default:
	}
}

func (s *talker) Stop() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) }
func (s *talker) Cut()  { close(s.cut) }

// A stop in phases: the port stays taken while the sessions end, and nobody else is served.
func TestSessionsCanBeStoppedInPhases(t *testing.T) {
	socket, err := net.Listen("tcp", freeport.Addr(t)) // nobody else takes the port behind it
	require.NoError(t, err)
	s := portserver.Start(socket, portserver.Options{NewSession: func(c net.Conn) portserver.Session { return &talker{c, make(chan struct{})} }})
	c := dial(t, s)
	_, err = io.WriteString(c, "x")
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.NoError(t, err)

	s.StopAccepting()
	_, err = net.Listen("tcp", s.Addr().String())
	require.Error(t, err, "the port is still taken")
	dial(t, s) // waits in vain
	require.Equal(t, 1, s.Conns())
	s.Each(portserver.Session.Stop)
	_, err = io.ReadFull(c, make([]byte, len("bye")))
	require.NoError(t, err)
	s.Each(portserver.Session.Cut)
	s.Wait()
	require.Zero(t, s.Conns())
	require.NoError(t, s.Close())
	l, err := net.Listen("tcp", s.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// Two sockets of one server share its limit, and the line about refusals comes once in a second.
func TestSocketsShareTheLimit(t *testing.T) {
	var refused []int
	s := start(t, portserver.Options{Serve: echo, MaxConns: 1, Full: func(n int) { refused = append(refused, n) }})
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.Add(other)
	first := dial(t, s)
	_, err = first.Write([]byte("x"))
	require.NoError(t, err)
	_, err = first.Read(make([]byte, 1))
	require.NoError(t, err)
	begun := time.Now()
	for range 3 {
		c, err := net.Dial("tcp", other.Addr().String())
		require.NoError(t, err)
		text, _ := io.ReadAll(c) // reset or closed
		require.Empty(t, text)
		c.Close()
	}
	require.EqualValues(t, 4, s.Total())
	require.NoError(t, s.Close())
	require.NotEmpty(t, refused)
	require.Equal(t, 1, refused[0])
	// A slow machine may take more than a second for the three.
	require.LessOrEqual(t, len(refused), 1+int(time.Since(begun)/time.Second))
}

// failing is a listener whose first accept fails.
type failing struct {
	net.Listener
	failed bool
}

func (l *failing) Accept() (net.Conn, error) {
	if !l.failed {
		l.failed = true
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

func TestErrorsOfAcceptAreReportedAndTheNextConnectionIsServed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	errs := make(chan error, 1)
	s := portserver.Start(&failing{Listener: l}, portserver.Options{Serve: echo, Failed: func(err error) { errs <- err }})
	require.EqualError(t, <-errs, "too many open files")
	c := dial(t, s)
	_, err = c.Write([]byte("x"))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// A connection that comes in otherwise is one of the server: within its limit, ended by its stop, and
// not taken after it.
func TestAdoptedConnections(t *testing.T) {
	s := start(t, portserver.Options{Serve: echo, MaxConns: 1})
	far, near := net.Pipe()
	defer far.Close()
	require.True(t, s.Adopt(near))
	require.Equal(t, 1, s.Conns())
	other, refused := net.Pipe()
	defer other.Close()
	defer refused.Close()
	require.False(t, s.Adopt(refused))
	require.NoError(t, far.SetDeadline(time.Now().Add(limit)))
	_, err := io.WriteString(far, "x")
	require.NoError(t, err)
	_, err = far.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = far.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.False(t, s.Adopt(refused))
}
