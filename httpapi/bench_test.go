package httpapi_test

import (
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/httpapi"
	"gotycoon/internal/browser"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
)

func dbOptions() db.Options { return db.Options{} }

// loop is a connection that brings one request again and again.
type loop struct {
	script
	request []byte
}

func (l *loop) Read(p []byte) (int, error) {
	if len(l.in) == 0 {
		l.in = l.request
	}
	n := copy(p, l.in)
	l.in = l.in[n:]
	return n, nil
}

// hotRequests are the requests that must not cost an allocation.
var hotRequests = []struct{ name, request string }{
	{"rpc-get", rpc("get", "key", "key1")},
	{"rpc-get-base64", post("/rpc/get", "text/tab-separated-values; colenc=B", "a2V5\ta2V5MQ==\n")},
	{"rpc-get-query", "GET /rpc/get?key=key1 HTTP/1.1\r\nHost: localhost\r\n\r\n"},
	{"rpc-set", rpc("set", "key", "key1", "value", strings.Repeat("v", 100))},
	{"rest-get", "GET /key1 HTTP/1.1\r\nHost: localhost\r\nUser-Agent: benchmark\r\n\r\n"},
	{"rpc-get-miss", rpc("get", "key", "none")},
	{"rest-get-miss", "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n"},
	{"rest-put", "PUT /key1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("v", 100)},
}

// hotSession returns a function that serves one request.
func hotSession(tb testing.TB, s *server, request string, m *metrics.Meter) func() {
	c := netio.New(&loop{request: []byte(request)}, netio.NewPool(), netio.Options{Timeout: time.Minute, Access: s.access})
	c.Meter = m.NewRecorder("bench")
	session := s.handler.NewSession(c, "bench")
	tb.Cleanup(session.Close)
	return func() {
		if c.WaitByte() != nil || !session.ServeOne() {
			tb.Fatal("the connection ended")
		}
	}
}

func hotServer(tb testing.TB) *server {
	pages, err := browser.New(nil)
	require.NoError(tb, err)
	s := newServerWith(tb, db.Options{}, httpapi.Options{Logger: slog.New(slog.DiscardHandler), Meters: httpapi.NewMeters(), Pages: pages})
	for i := range 10_000 { // few records in a large table would measure the sweep
		key := []byte("key" + strconv.Itoa(i))
		require.NoError(tb, s.catalog.DB(0).Set(nil, key, []byte(strings.Repeat("v", 100)), record.Never))
	}
	return s
}

// BenchmarkServeOne serves requests without a meter, with one that is still, as servers have that
// nobody asks for figures, and with one that measures. It has no socket.
func BenchmarkServeOne(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkServeOne(b, nil) })
	b.Run("still", func(b *testing.B) { benchmarkServeOne(b, metrics.New(metrics.Options{Still: true})) })
	b.Run("measured", func(b *testing.B) { benchmarkServeOne(b, metrics.New(metrics.Options{})) })
}

func benchmarkServeOne(b *testing.B, m *metrics.Meter) {
	for _, hot := range hotRequests {
		b.Run(hot.name, func(b *testing.B) {
			serve := hotSession(b, hotServer(b), hot.request, m)
			b.ReportAllocs()
			for b.Loop() {
				serve()
			}
		})
	}
}

func TestHotRequestsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("pools do not work under the race detector")
	}
	for _, hot := range hotRequests {
		t.Run(hot.name, func(t *testing.T) {
			serve := hotSession(t, hotServer(t), hot.request, metrics.New(metrics.Options{}))
			for range 100 {
				serve()
			}
			require.LessOrEqual(t, testing.AllocsPerRun(1000, serve), 0.0)
		})
	}
}

// RemoteAddr implements net.Conn.
func (*loop) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50000} }
