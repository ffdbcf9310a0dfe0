package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	tsvHeader = "Content-Type: text/tab-separated-values"
	void      = "GET /rpc/void HTTP/1.1\r\n"
)

func TestReplyToTheByte(t *testing.T) {
	const start = "Server: KyotoTycoon/0.9.56b\r\nDate: Sat, 21 Nov 2026 02:19:52 GMT\r\n"
	for _, tc := range []struct{ name, request, want string }{
		{"procedure", void + "\r\n", "HTTP/1.1 200 OK\r\n" + start + "Content-Length: 0\r\n" + tsvHeader + "\r\n\r\n"},
		{"last of the connection", void + "Connection: close\r\n\r\n",
			"HTTP/1.1 200 OK\r\n" + start + "Connection: close\r\nContent-Length: 0\r\n" + tsvHeader + "\r\n\r\n"},
		{"HEAD of a procedure has no length", "HEAD /rpc/void HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n" + start + tsvHeader + "\r\n\r\n"},
		{"REST miss", "GET /a HTTP/1.1\r\n\r\n",
			"HTTP/1.1 404 Not Found\r\n" + start + "Content-Length: 0\r\nX-Kt-Error: DB: 7: no record: no record\r\n\r\n"},
		{"REST put", "PUT /a?b=c HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
			"HTTP/1.1 201 Created\r\n" + start + "Content-Length: 0\r\nLocation: http://localhost:1978/a?b=c\r\n\r\n"},
		{"413", "PUT /a HTTP/1.1\r\nContent-Length: 268435457\r\n\r\n",
			"HTTP/1.1 413 Request Entity Too Large\r\n" + start +
				"Connection: close\r\nContent-Length: 56\r\nContent-Type: text/plain\r\n\r\n413 Request Entity Too Large (request entity too large)\n"},
		{"two in one packet", void + "\r\n" + "GET /rpc/echo?a=1 HTTP/1.1\r\nConnection: close\r\n\r\n",
			"HTTP/1.1 200 OK\r\n" + start + "Content-Length: 0\r\n" + tsvHeader + "\r\n\r\n" +
				"HTTP/1.1 200 OK\r\n" + start + "Connection: close\r\nContent-Length: 4\r\n" + tsvHeader + "\r\n\r\na\t1\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newServer(t).dial(t).send(tc.request)
			got := make([]byte, len(tc.want))
			n, err := readFull(c, got)
			require.Equal(t, tc.want, string(got[:n]))
			require.NoError(t, err)
		})
	}
}

func TestSilentlyClosed(t *testing.T) {
	for _, tc := range []struct{ name, request string }{
		{"unknown version", "GET /rpc/void HTTP/1.2\r\n\r\n"},
		{"no version", "GET /rpc/void\r\n\r\n"},
		{"version in lower case", "GET /rpc/void http/1.1\r\n\r\n"},
		{"blank behind the version", "GET /rpc/void HTTP/1.1 \r\n\r\n"},
		{"two blanks", "GET  /rpc/void HTTP/1.1\r\n\r\n"},
		{"blank first", " GET /rpc/void HTTP/1.1\r\n\r\n"},
		{"empty line first", "\r\n" + void + "\r\n"},
		{"one word", "hello\r\n\r\n"},
		{"only a query", "GET ?a=b HTTP/1.1\r\n\r\n"},
		{"NUL in the line", "GET /rpc/void\x00 HTTP/1.1\r\n\r\n"},
		{"request line too long", "GET /" + strings.Repeat("x", 9000) + " HTTP/1.1\r\n\r\n"},
		{"headers without end", void + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 1100)},
		{"carriage returns without end", "GET" + strings.Repeat("\r", 1<<20+10)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			newServer(t).dial(t).send(tc.request).requireEnd()
		})
	}
}

func TestRequestLinesAndHeaders(t *testing.T) {
	const echo = "POST /rpc/echo HTTP/1.1\r\n"
	for _, tc := range []struct{ name, request, body string }{
		{"bare line feeds", "GET /rpc/echo?a=1 HTTP/1.1\n\n", "a\t1\n"},
		{"carriage returns anywhere", "GE\rT /rpc/ec\rho?a=1 HTTP/1.1\r\n\r\n", "a\t1\n"},
		{"header without a colon", "GET /rpc/echo?a=1 HTTP/1.1\r\ngarbage\r\n\r\n", "a\t1\n"},
		{"blanks around the header name", echo + "  Content-Type : text/tab-separated-values\r\nContent-Length : 4\r\n\r\na\t1\n", "a\t1\n"},
		{"last header wins", echo + "Content-Type: text/plain\r\n" + tsvHeader + "\r\nContent-Length: 4\r\n\r\na\t1\n", "a\t1\n"},
		{"no folded headers", echo + "Content-Type:\r\n text/tab-separated-values\r\nContent-Length: 4\r\n\r\na\t1\n", ""},
		{"NUL hides the rest", echo + tsvHeader + "\x00x\r\nContent-Length: 4\r\n\r\na\t1\n", "a\t1\n"},
		{"length with a sign and a tail", echo + tsvHeader + "\r\nContent-Length: +4abc\r\n\r\na\t1\n", "a\t1\n"},
		{"many headers", "GET /rpc/echo?a=1 HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", 5000) + "\r\n", "a\t1\n"},
		{"chunks", echo + tsvHeader + "\r\nTransfer-Encoding: Chunked\r\n\r\n0x3;x=y\r\na\t1\r\n1\r\n\n\r\n0\r\n\r\n", "a\t1\n"},
		{"an empty size ends the chunks", echo + tsvHeader + "\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na\t1\n\r\n\r\n", "a\t1\n"},
		{"form in the query", "GET /rpc/echo?b+c=%31;=x&d#e HTTP/1.1\r\n\r\n", "\tx\nb c\t1\nd#e\t\n"},
		{"encoded procedure name", "GET /rpc/e%63ho?a=1 HTTP/1.1\r\n\r\n", "a\t1\n"},
		{"8-bit letters in the query", "GET /rpc/echo?a=\xe5\xb9\xb9 HTTP/1.1\r\n\r\n", "a\t\xe5\xb9\xb9\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newServer(t).dial(t)
			r := c.do(tc.request)
			require.Equal(t, "200 OK", r.status)
			require.Equal(t, tc.body, r.body)
			c.requireOpen()
		})
		t.Run(tc.name+", byte by byte", func(t *testing.T) {
			if len(tc.request) > 1000 {
				t.Skip("long")
			}
			c := newServer(t).dial(t)
			go func() {
				for i := range len(tc.request) {
					if _, err := c.conn.Write([]byte{tc.request[i]}); err != nil {
						return
					}
				}
			}()
			require.Equal(t, tc.body, c.receive(false).body)
		})
	}
}

func TestKeepAlive(t *testing.T) {
	for _, tc := range []struct {
		name, version, headers string
		keep                   bool
	}{
		{"1.1", "1.1", "", true},
		{"1.1 close", "1.1", "Connection: close\r\n", false},
		{"1.1 close in capitals without a blank", "1.1", "CONNECTION:CLOSE\r\n", false},
		{"1.1 close behind a tab", "1.1", "Connection:\tclose\r\n", true},
		{"1.1 close before a blank", "1.1", "Connection: close \r\n", true},
		{"1.1 list", "1.1", "Connection: close, TE\r\n", true},
		{"1.1 last wins", "1.1", "Connection: close\r\nConnection: keep-alive\r\n", true},
		{"1.1 unknown does not count", "1.1", "Connection: close\r\nConnection: foo\r\n", false},
		{"1.0", "1.0", "", false},
		{"1.0 keep-alive", "1.0", "Connection: Keep-Alive\r\n", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newServer(t).dial(t)
			r := c.do("GET /rpc/void HTTP/" + tc.version + "\r\n" + tc.headers + "\r\n")
			if tc.keep {
				require.Empty(t, r.header("Connection"))
				c.requireOpen()
				return
			}
			require.Equal(t, "close", r.header("Connection"))
			c.requireEnd()
		})
	}
}
