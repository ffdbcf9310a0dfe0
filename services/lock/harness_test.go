package lock

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
)

const waitLimit = 20 * time.Second // of anything that a test waits for

// start runs a server, whose connections rest in loops, until the test ends.
func start(tb testing.TB, o Options) (*Server, string) {
	tb.Helper()
	o.Loops = netio.NewLoops(2) // nil where the system has none
	o.Loops.Use(2)
	tb.Cleanup(o.Loops.Close)
	return startAlone(tb, o)
}

// inLoopsAndAlone runs a test with a server whose connections rest in loops, and with one whose
// connections have goroutines.
func inLoopsAndAlone(t *testing.T, test func(t *testing.T, start func(testing.TB, Options) (*Server, string))) {
	t.Run("loops", func(t *testing.T) { t.Parallel(); test(t, start) })
	t.Run("goroutines", func(t *testing.T) { t.Parallel(); test(t, startAlone) })
}

// startAlone runs a server, whose connections have goroutines, until the test ends.
func startAlone(tb testing.TB, o Options) (*Server, string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	s, err := New(o)
	require.NoError(tb, err)
	s.Start(l)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s, l.Addr().String()
}

// peer is one connection to a server.
type peer struct {
	net.Conn
	tb testing.TB
	in *bufio.Reader
}

func dial(tb testing.TB, addr string) *peer {
	tb.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(tb, err)
	tb.Cleanup(func() { c.Close() })
	require.NoError(tb, c.SetDeadline(time.Now().Add(2*waitLimit)))
	return &peer{Conn: c, tb: tb, in: bufio.NewReaderSize(c, 64<<10)}
}

func (p *peer) send(format string, args ...any) {
	p.tb.Helper()
	_, err := fmt.Fprintf(p, format+"\n", args...)
	require.NoError(p.tb, err)
}

// line returns the next line without its end.
func (p *peer) line() string {
	p.tb.Helper()
	return strings.TrimSuffix(p.lines(1), "\n")
}

func (p *peer) lines(n int) string {
	p.tb.Helper()
	var b strings.Builder
	for range n {
		line, err := p.in.ReadString('\n')
		require.NoError(p.tb, err, "after %q", b.String()+line)
		b.WriteString(line)
	}
	return b.String()
}

// call sends a command and returns the next line.
func (p *peer) call(format string, args ...any) string {
	p.tb.Helper()
	p.send(format, args...)
	return p.line()
}

// silent requires that nothing arrives for a time.
func (p *peer) silent(length time.Duration) {
	p.tb.Helper()
	require.NoError(p.tb, p.SetReadDeadline(time.Now().Add(length)))
	text, err := p.in.ReadString('\n')
	require.ErrorIs(p.tb, err, os.ErrDeadlineExceeded, "%q", text)
	require.Empty(p.tb, text)
	require.NoError(p.tb, p.SetReadDeadline(time.Now().Add(2*waitLimit)))
}

// fakeFences counts in memory.
type fakeFences struct {
	bound  uint64
	failed error
}

func (f *fakeFences) Reserve(n uint64) (uint64, error) {
	if f.failed != nil {
		return 0, f.failed
	}
	first := f.bound + 1
	f.bound += n
	return first, nil
}

// big tells whether tests that take minutes are wanted.
func big() bool { return os.Getenv("GOTYCOON_BIG") != "" }
