package httpapi_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
)

func readFull(c *client, buf []byte) (int, error) { return io.ReadFull(c.in, buf) }

// Bytes that may be the body of a request are never served as the next request.
func TestNothingIsServedBehindAnUnreadBody(t *testing.T) {
	const inner = "PUT /smuggled HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"
	for _, tc := range []struct{ name, head string }{
		{"GET with a length", "GET /a HTTP/1.1\r\nContent-Length: 47\r\n\r\n"},
		{"HEAD with a length", "HEAD /a HTTP/1.1\r\nContent-Length: 47\r\n\r\n"},
		{"DELETE with a length", "DELETE /a HTTP/1.1\r\nContent-Length: 47\r\n\r\n"},
		{"GET with chunks", "GET /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"negative length", "PUT /b HTTP/1.1\r\nContent-Length: -1\r\n\r\n"},
		{"length that wraps around", "PUT /b HTTP/1.1\r\nContent-Length: 9223372036854775808\r\n\r\n"},
		{"encoding nobody knows", "PUT /b HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
		{"length and chunks", "PUT /b HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc"},
		{"two lengths", "PUT /b HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"},
		{"header line cut by its length", void + "X: " + string(make8(8188)) + "\r\n\r\n"},
	} {
		t.Run(tc.name+", at once", func(t *testing.T) {
			s := newServer(t)
			c := s.dial(t).send(tc.head + inner)
			c.receive(tc.head[:4] == "HEAD")
			c.requireEnd()
			require.Equal(t, "404 Not Found", s.dial(t).do("GET /smuggled HTTP/1.1\r\n\r\n").status)
		})
		t.Run(tc.name+", later", func(t *testing.T) {
			s := newServer(t)
			c := s.dial(t).send(tc.head)
			c.receive(tc.head[:4] == "HEAD")
			c.send(inner).requireEnd()
			require.Equal(t, "404 Not Found", s.dial(t).do("GET /smuggled HTTP/1.1\r\n\r\n").status)
		})
	}
}

func make8(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'y'
	}
	return b
}

func TestRefusedBodies(t *testing.T) {
	const chunked = "PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, tc := range []struct{ name, request, body string }{
		{"trailer", chunked + "3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n", "400 Bad Request (invalid chunk)\n"},
		{"chunk longer than its size", chunked + "3\r\nabcX\r\n0\r\n\r\n", "400 Bad Request (invalid chunk)\n"},
		{"endless size line", chunked + string(make8(9000)), "400 Bad Request (invalid chunk)\n"},
		{"chunk too large", chunked + "10000001\r\n", "413 Request Entity Too Large (request entity too large)\n"},
		{"chunk size that wraps around", chunked + "10000000000000001\r\n", "413 Request Entity Too Large (request entity too large)\n"},
		{"two lengths", "PUT /a HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", "400 Bad Request (conflicting lengths)\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			c := s.dial(t)
			r := c.do(tc.request)
			require.Equal(t, tc.body, r.body)
			require.Equal(t, []string{"Connection: close", "Content-Length: " + itoa(len(tc.body)), "Content-Type: text/plain"}, r.headers)
			c.requireEnd()
			require.Empty(t, s.log.String(), "refused requests have no log line")
		})
	}
}

func TestBodyThatDoesNotArrive(t *testing.T) {
	s := newServer(t)
	s.timeout = 20 * time.Millisecond
	for _, request := range []string{
		"PUT /a HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc",
		"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
		"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc",
		"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3",
	} {
		c := s.dial(t)
		require.Equal(t, "400 Bad Request (receiving data failed)\n", c.do(request).body)
		c.requireEnd()
	}
	s.dial(t).send("PUT /a HTTP/1.1\r\nContent-Le").requireEnd()
}

// A Content-Length takes no memory until the bytes arrive.
func TestClaimedLength(t *testing.T) {
	s := newServer(t)
	c := s.dial(t).send("PUT /a HTTP/1.1\r\nContent-Length: 268435456\r\n\r\nabc")
	c.requireSilent()
	require.NoError(t, c.conn.Close())
}

// A client that sends many requests and reads nothing does not make the server hold all the
// replies.
func TestUnsentRepliesAreBounded(t *testing.T) {
	s := newServer(t)
	c := s.dial(t)
	c.ok("set", "key", "a", "value", string(make8(1<<20)))
	const requests = 20
	conn := &script{in: []byte(strings.Repeat("GET /a HTTP/1.1\r\n\r\n", requests)), piece: 1 << 20}
	nc := netio.New(conn, netio.NewPool(), netio.Options{Timeout: time.Second})
	session := s.handler.NewSession(nc, "client")
	defer session.Close()
	for range requests {
		require.NoError(t, nc.WaitByte())
		require.True(t, session.ServeOne())
		require.Less(t, len(nc.Out), 1<<20)
	}
	require.Greater(t, conn.out, requests<<20)
}
