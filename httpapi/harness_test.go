package httpapi_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/textproto"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/httpapi"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/opcount"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server runs sessions over in-memory connections.
type server struct {
	handler *httpapi.Handler
	signals *httpapi.Signals
	counts  *opcount.Counts
	catalog *db.Catalog
	log     *bytes.Buffer
	timeout time.Duration
	access  *access.Guard
	limits  *netio.Limits
	meter   *metrics.Meter
	conns   sync.WaitGroup
}

// epoch is what the clock of the tests shows.
var epoch = time.Date(2026, 11, 21, 2, 19, 52, 0, time.UTC)

func newServer(t testing.TB, exprs ...string) *server {
	t.Helper()
	return newServerWith(t, db.Options{}, httpapi.Options{}, exprs...)
}

func newServerWith(t testing.TB, do db.Options, ho httpapi.Options, exprs ...string) *server {
	t.Helper()
	if len(exprs) == 0 {
		exprs = []string{":"}
	}
	clock := func() time.Time { return epoch }
	if do.Now == nil {
		do.Now = clock
	}
	catalog, err := db.Open(exprs, do)
	require.NoError(t, err)
	if ho.Signals == nil {
		ho.Signals = httpapi.NewSignals(nil)
	}
	s := &server{
		signals: ho.Signals, counts: new(opcount.Counts), catalog: catalog,
		log: new(bytes.Buffer), timeout: 5 * time.Second,
	}
	ho.Catalog, ho.Counts = catalog.View, s.counts
	ho.Now, ho.Port = clock, 1978
	if ho.Logger == nil {
		ho.Logger = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	}
	s.handler = httpapi.NewHandler(ho)
	t.Cleanup(func() {
		s.conns.Wait()
		require.NoError(t, catalog.Close())
	})
	return s
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// serve answers the requests of one connection as a server does.
func (s *server) serve(conn net.Conn) {
	defer conn.Close()
	c := netio.New(conn, netio.NewPool(), netio.Options{Timeout: s.timeout, Access: s.access, Limits: s.limits})
	defer c.Close()
	c.Meter = s.meter.NewRecorder("127.0.0.1:50000")
	session := s.handler.NewSession(c, "127.0.0.1:50000")
	defer session.Close()
	for c.WaitByte() == nil {
		if !session.ServeOne() {
			_ = c.Flush() // the client may be gone
			return
		}
	}
}

// client is the other end of a connection.
type client struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func (s *server) dial(t testing.TB) *client {
	t.Helper()
	near, far := net.Pipe()
	s.conns.Go(func() { s.serve(far) })
	require.NoError(t, near.SetDeadline(time.Now().Add(2*time.Minute)))
	t.Cleanup(func() { _ = near.Close() })
	return &client{t: t, conn: near, in: bufio.NewReader(near)}
}

// send writes without waiting for the server to read.
func (c *client) send(request string) *client {
	go func() { _, _ = io.WriteString(c.conn, request) }()
	return c
}

// reply is a response taken apart.
type reply struct {
	status  string
	headers []string // as they came, without Server and Date, which every reply must have
	body    string
}

func (r *reply) header(name string) string {
	for _, h := range r.headers {
		if value, ok := strings.CutPrefix(h, name+": "); ok {
			return value
		}
	}
	return ""
}

// receive reads one response; head says that it answers HEAD and has no body.
func (c *client) receive(head bool) *reply {
	c.t.Helper()
	tp := textproto.NewReader(c.in)
	line, err := tp.ReadLine()
	require.NoError(c.t, err)
	r := &reply{status: strings.TrimPrefix(line, "HTTP/1.1 ")}
	for {
		line, err = tp.ReadLine()
		require.NoError(c.t, err)
		if line == "" {
			break
		}
		r.headers = append(r.headers, line)
	}
	require.GreaterOrEqual(c.t, len(r.headers), 2)
	require.Equal(c.t, []string{"Server: KyotoTycoon/0.9.56b", "Date: Sat, 21 Nov 2026 02:19:52 GMT"}, r.headers[:2])
	r.headers = r.headers[2:]
	if !head {
		body := make([]byte, atoi(r.header("Content-Length")))
		_, err = io.ReadFull(c.in, body)
		require.NoError(c.t, err)
		r.body = string(body)
	}
	return r
}

func atoi(s string) (n int) {
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}

// do sends one request and returns the response.
func (c *client) do(request string) *reply {
	c.t.Helper()
	return c.send(request).receive(strings.HasPrefix(request, "HEAD "))
}

// call calls a procedure with plain rows and returns status code and body.
func (c *client) call(procedure string, rows ...string) (status, body string) {
	c.t.Helper()
	r := c.do(rpc(procedure, rows...))
	return r.status[:3], r.body
}

// ok calls a procedure that must succeed and returns its body.
func (c *client) ok(procedure string, rows ...string) string {
	c.t.Helper()
	status, body := c.call(procedure, rows...)
	require.Equal(c.t, "200", status, body)
	return body
}

// rpc is a procedure call; rows are names and values in turn.
func rpc(procedure string, rows ...string) string {
	var body strings.Builder
	for i := 0; i < len(rows); i += 2 {
		body.WriteString(rows[i] + "\t" + rows[i+1] + "\n")
	}
	return post("/rpc/"+procedure, "text/tab-separated-values", body.String())
}

func post(target, contentType, body string) string {
	return "POST " + target + " HTTP/1.1\r\nContent-Type: " + contentType + "\r\nContent-Length: " + itoa(len(body)) +
		"\r\n\r\n" + body
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

// requireEnd checks that the server closes the connection without a further byte.
func (c *client) requireEnd() {
	c.t.Helper()
	rest, err := io.ReadAll(c.in)
	if !errors.Is(err, io.ErrClosedPipe) {
		require.NoError(c.t, err)
	}
	require.Empty(c.t, string(rest))
}

// requireOpen checks that the connection still serves requests.
func (c *client) requireOpen() {
	c.t.Helper()
	require.Equal(c.t, "200 OK", c.do("GET /rpc/void HTTP/1.1\r\n\r\n").status)
}

// requireSilent checks that nothing comes for a moment.
func (c *client) requireSilent() {
	c.t.Helper()
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.in.ReadByte()
	require.ErrorIs(c.t, err, os.ErrDeadlineExceeded)
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(20*time.Second)))
}
