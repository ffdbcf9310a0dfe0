package httpapi_test

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/httpapi"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
)

// once is a connection that brings its bytes and ends.
type once struct{ script }

// Read implements net.Conn.
func (o *once) Read(p []byte) (int, error) {
	if len(o.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.in)
	o.in = o.in[n:]
	return n, nil
}

// Each pipelined request is counted, also if it fails, and a request that waits for a signal does
// not count as slow.
func TestMeasuredRequests(t *testing.T) {
	var log bytes.Buffer
	meters := httpapi.NewMeters()
	s := newServerWith(t, db.Options{}, httpapi.Options{Meters: meters})
	// Slow is just less than WAITTIME: a slow machine takes less for any of the requests, and a
	// request whose wait is counted is above it.
	m := metrics.New(metrics.Options{Slow: 1900 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	conn := new(once)
	conn.in = []byte(strings.Repeat("GET /none HTTP/1.1\r\n\r\n", 5) +
		"GET /rpc/void?WAIT=nobody&WAITTIME=2 HTTP/1.1\r\n\r\n" +
		"GET /rpc/no HTTP/1.1\r\n\r\nPATCH /x HTTP/1.1\r\n\r\nnonsense\r\n\r\n")
	c := netio.New(conn, netio.NewPool(), netio.Options{Timeout: time.Minute})
	c.Meter = m.NewRecorder("peer")
	session := s.handler.NewSession(c, "peer")
	defer session.Close()
	for c.WaitByte() == nil && session.ServeOne() {
	}
	require.NoError(t, c.Flush())
	count := func(p *metrics.Protocol, name string) metrics.Command {
		for _, command := range p.Commands() {
			if command.Name == name {
				return command
			}
		}
		t.Fatal(name)
		return metrics.Command{}
	}
	require.EqualValues(t, 5, count(meters.REST, "get").Timed)
	require.Zero(t, count(meters.REST, "get").Failed, "that a record is not there is a normal outcome")
	require.EqualValues(t, 1, count(meters.RPC, "void").Failed, "timed out")
	require.Less(t, count(meters.RPC, "void").Seconds, 2.0, "without the wait")
	require.EqualValues(t, 1, count(meters.RPC, "unknown").Failed)
	require.EqualValues(t, 2, count(meters.REST, "other").Failed)
	require.Empty(t, log.String())
}
