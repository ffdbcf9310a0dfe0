package httpapi_test

import (
	"io"
	"log/slog"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/httpapi"
	"gotycoon/internal/netio"
)

// script is a connection that brings some bytes, in pieces, and swallows the answers.
type script struct {
	net.Conn
	in    []byte
	piece int
	out   int
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), max(s.piece, 1))], s.in)
	s.in = s.in[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	s.out += len(p)
	return len(p), nil
}

func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		void + "\r\n",
		rpc("set", "key", "a", "value", "1", "DB", "1", "CUR", "1", "SIGNAL", "x"),
		rpc("void", "WAIT", "x", "WAITTIME", "0.001"),
		"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"GET /a HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
		post("/rpc/echo?a=%41", "text/tab-separated-values; colenc=B", "aw\tdg"),
		post("/rpc/match_regex", "application/x-www-form-urlencoded", "regex=a*"),
		"PUT /1/k HTTP/1.1\r\nX-Kt-Xt: 2100-01-01\r\nX-Kt-Mode: add\r\nContent-Length: 1\r\n\r\nv",
	} {
		f.Add([]byte(seed+seed), 7)
	}
	s := newServerWith(f, dbOptions(), httpapi.Options{Logger: slog.New(slog.DiscardHandler), CmdDir: f.TempDir()}, ":", "%")
	s.signals.Shutdown() // nobody waits
	f.Fuzz(func(t *testing.T, in []byte, piece int) {
		c := netio.New(&script{in: in, piece: piece}, netio.NewPool(), netio.Options{Timeout: time.Second})
		session := s.handler.NewSession(c, "fuzz")
		defer session.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for c.WaitByte() == nil && session.ServeOne() {
		}
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "memory for %d bytes", len(in))
	})
}

func FuzzDate(f *testing.F) {
	for _, seed := range []string{"4102444800", "0x7f", "2100-01-01T00:00:00.5Z", "Fri, 01 Jan 2100 09:00:00 +0900"} {
		f.Add(seed)
	}
	s := newServer(f)
	f.Fuzz(func(t *testing.T, text string) {
		in := []byte("PUT /a HTTP/1.1\r\nX-Kt-Xt: " + text + "\r\n\r\nGET /a HTTP/1.1\r\n\r\n")
		c := netio.New(&script{in: in, piece: 1 << 20}, netio.NewPool(), netio.Options{Timeout: time.Second})
		session := s.handler.NewSession(c, "fuzz")
		defer session.Close()
		for c.WaitByte() == nil && session.ServeOne() {
		}
	})
}
