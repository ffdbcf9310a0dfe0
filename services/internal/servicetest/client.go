// Package servicetest has what the tests of several services need: a client, a standby, recorded
// conversations, and servers that are killed.
package servicetest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/services"
	"gotycoon/services/leader"
	"gotycoon/ulog"
)

// OpenDB opens the database in a directory. The caller's cleanups that use it come first.
func OpenDB(t *testing.T, dir string) *db.DB {
	t.Helper()
	c, err := db.Open([]string{filepath.Join(dir, "services.kct")}, db.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c.DB(0)
}

// Listen returns a listener on a free port.
func Listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// Start starts a server on a free port and closes it after the test. It returns the address.
func Start(t *testing.T, s services.Service) (addr string) {
	t.Helper()
	l := Listen(t)
	s.Start(l)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return l.Addr().String()
}

// Client is one connection on which calls are made.
type Client struct {
	t      *testing.T
	Socket net.Conn
	Reader *bufio.Reader
}

// NewClient returns a client of the server at addr.
func NewClient(t *testing.T, addr string) *Client {
	t.Helper()
	socket := Dial(t, addr)
	return &Client{t, socket, bufio.NewReader(socket)}
}

// Get makes a call and returns the reply.
func (c *Client) Get(path string) (status int, body string) {
	c.t.Helper()
	_, err := fmt.Fprintf(c.Socket, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	require.NoError(c.t, err)
	return ReadReply(c.t, c.Reader)
}

// Is makes a call and requires the body of the reply to be a line.
func (c *Client) Is(path, body string) {
	c.t.Helper()
	status, got := c.Get(path)
	require.Equal(c.t, 200, status, path)
	require.Equal(c.t, body+"\n", got, path)
}

// Refused requires the call to be refused by a standby for a reason.
func (c *Client) Refused(path, reason string) {
	c.t.Helper()
	status, body := c.Get(path)
	require.Equal(c.t, 503, status, path)
	require.Contains(c.t, body, reason)
}

// Ask makes a call with a token, and returns the whole reply.
func (c *Client) Ask(method, path, token, body string) *http.Response {
	c.t.Helper()
	header := ""
	if token != "" {
		header = "authorization: Bearer " + token + "\r\n"
	}
	_, err := fmt.Fprintf(c.Socket, "%s %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", method, path, header, len(body), body)
	require.NoError(c.t, err)
	r, err := http.ReadResponse(c.Reader, nil)
	require.NoError(c.t, err)
	var text strings.Builder
	_, err = bufio.NewReader(r.Body).WriteTo(&text)
	require.NoError(c.t, err)
	r.Status = text.String()
	return r
}

// Dial connects to addr.
func Dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c
}

// ReadReply reads one reply and requires it to have exactly the original's headers.
func ReadReply(t *testing.T, r *bufio.Reader) (status int, body string) {
	t.Helper()
	line, err := textproto.NewReader(r).ReadLine()
	require.NoError(t, err)
	words := strings.SplitN(line, " ", 3)
	require.Len(t, words, 3, line)
	status, err = strconv.Atoi(words[1])
	require.NoError(t, err)
	size := -1
	for {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		line = strings.TrimSuffix(line, "\r\n")
		if line == "" {
			break
		}
		if value, ok := strings.CutPrefix(line, "Content-length: "); ok {
			size, err = strconv.Atoi(value)
			require.NoError(t, err)
			continue
		}
		require.Equal(t, "Connection: keep-alive", line)
	}
	text := make([]byte, size)
	_, err = io.ReadFull(r, text)
	require.NoError(t, err)
	return status, string(text)
}

// WaitFor waits until ok returns true.
func WaitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 10*time.Second, time.Millisecond, what)
}

// Standby is a server whose services' database is a copy of that of server 1.
type Standby struct {
	t    *testing.T
	DB   *db.DB
	Role *leader.Role
}

// NewStandby returns server 2, which knows that server 1 is the primary.
func NewStandby(t *testing.T) *Standby {
	t.Helper()
	s := &Standby{t: t, DB: OpenDB(t, t.TempDir())}
	var err error
	s.Role, err = leader.Open(leader.Options{DB: s.DB, SID: 2})
	require.NoError(t, err)
	s.Receive("primary\x001", "1")
	require.NoError(t, s.Role.CaughtUp())
	return s
}

// Receive stores what server 1 has written.
func (s *Standby) Receive(key, value string) { s.t.Helper(); s.ReceiveFrom(1, key, value) }

// ReceiveFrom stores what another server has written.
func (s *Standby) ReceiveFrom(sid uint16, key, value string) {
	s.t.Helper()
	s.Take(ulog.Update{SID: sid, Op: ulog.OpSet, Key: []byte(key), Value: append([]byte{0xff, 0xff, 0xff, 0xff, 0xff}, value...)})
}

// Take stores an update.
func (s *Standby) Take(u ulog.Update) {
	s.t.Helper()
	ups := []ulog.Update{u}
	_, err := s.Role.Prepare(ups)
	require.NoError(s.t, err)
	require.NoError(s.t, s.Role.Replicate(nil, ups, nil, false))
}
