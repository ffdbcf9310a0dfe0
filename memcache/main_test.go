package memcache

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/db"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

// started is a service on a free port.
type started struct {
	*Server
	addr    string
	db      *db.DB
	catalog *db.Catalog
}

// start serves a database with the options of an expression.
func start(t testing.TB, plex, expr string) *started {
	t.Helper()
	catalog, err := db.Open([]string{expr}, db.Options{})
	require.NoError(t, err)
	s, err := New(Options{Config: ParseConfig(plex), DB: catalog.DB(0), Started: time.Now()})
	require.NoError(t, err)
	st := &started{Server: s, db: catalog.DB(0), catalog: catalog}
	st.open(t)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, catalog.Close())
	})
	return st
}

func (s *started) open(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = l.Addr().String()
	s.Open(l)
}

// client is one connection.
type client struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func (s *started) dial(t testing.TB) *client {
	t.Helper()
	c, err := net.Dial("tcp4", s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(6*patience)))
	return &client{Conn: c, t: t, r: bufio.NewReader(c)}
}

func (c *client) send(format string, args ...any) {
	c.t.Helper()
	_, err := fmt.Fprintf(c, format, args...)
	require.NoError(c.t, err)
}

// expect reads as many bytes as want has and compares.
func (c *client) expect(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c.r, got)
	require.Equal(c.t, want, string(got[:n]), "%v", err)
}

// ask sends lines and expects others; line feeds stand for line ends.
func (c *client) ask(sent, want string) {
	c.t.Helper()
	c.send("%s", crlf(sent))
	c.expect(crlf(want))
}

// line reads one line.
func (c *client) line() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	require.NoError(c.t, err)
	return strings.TrimSuffix(line, "\r\n")
}

// ended checks that the server has closed the connection.
func (c *client) ended() {
	c.t.Helper()
	rest, _ := io.ReadAll(c.r)
	require.Empty(c.t, string(rest))
}

func crlf(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
