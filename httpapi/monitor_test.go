package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/httpapi"
	"gotycoon/internal/metrics"
)

// watchedServer measures nothing, and can show its requests.
func watchedServer(t *testing.T) (*server, *metrics.Meter) {
	t.Helper()
	m := httpapi.NewMeters()
	m.Meter = metrics.New(metrics.Options{Still: true})
	s := newServerWith(t, db.Options{}, httpapi.Options{Meters: m}, ":", "%")
	s.meter = m.Meter
	return s, m.Meter
}

func TestMonitorKeepsWhatComesBetweenCalls(t *testing.T) {
	s, meter := watchedServer(t)
	c, other := s.dial(t), s.dial(t)
	require.Equal(t, "missed\t0\n", c.ok("monitor", "seconds", "0", "database", "1"))
	require.Equal(t, 1, meter.Watches())
	other.ok("set", "DB", "1", "key", "a b", "value", "secret")
	other.ok("set", "key", "elsewhere", "value", "v")
	other.ok("set_bulk", "DB", "1", "_x", "1", "_y", "2")
	body := c.ok("monitor", "seconds", "0", "database", "1")
	require.Regexp(t, `^1\ttime=\d+\.\d{6} protocol=rpc command=set db="%" key="a b" in=\d+ out=\d+ failed=0 peer=127\.0\.0\.1:50000\n`+
		`2\ttime=\S+ protocol=rpc command=set_bulk db="%" key="" in=\d+ out=\d+ failed=0 peer=\S+\nmissed\t0\n$`, body)
	require.NotContains(t, body, "secret")

	require.Equal(t, "missed\t0\n", c.ok("monitor", "seconds", "0"), "another choice begins anew")
	require.Equal(t, 1, meter.Watches())
	other.send("GET /rest HTTP/1.1\r\n\r\n").receive(false)
	other.send("POST /rest HTTP/1.1\r\nContent-Length: 0\r\n\r\n").receive(false)
	require.Equal(t, 2, strings.Count(c.ok("monitor", "seconds", "0"), "key=\"rest\""), "the call itself is not shown")
	require.Equal(t, "missed\t0\n", c.ok("monitor", "failed", "", "seconds", "0"))
	other.send("POST /rest HTTP/1.1\r\nContent-Length: 0\r\n\r\n").receive(false)
	other.ok("get_bulk", "_x", "")
	require.Contains(t, c.ok("monitor", "failed", "", "max", "1"), "failed=1")

	require.NoError(t, c.conn.Close())
	require.Eventually(t, func() bool { return meter.Watches() == 0 }, 10*time.Second, time.Millisecond, "the connection has ended")
}

func TestMonitorWithoutAMeter(t *testing.T) {
	status, body := newServer(t).dial(t).call("hotkeys")
	require.Equal(t, "501", status)
	require.Contains(t, body, "nobody measures requests here")
}

func TestHotKeys(t *testing.T) {
	s, meter := watchedServer(t)
	c, other := s.dial(t), s.dial(t)
	c.send(rpc("hotkeys", "max", "2", "seconds", "3")) // all requests must come within them
	require.Eventually(t, func() bool { return meter.Watches() == 1 }, 10*time.Second, time.Millisecond)
	for range 3 {
		other.ok("set_bulk", "_x", "1", "_y y", "2")
	}
	other.send("GET /x HTTP/1.1\r\n\r\n").receive(false)
	other.ok("set", "DB", "1", "key", "x", "value", "v")
	body := c.receive(false).body
	require.Equal(t, "1\tcount=4 over=0 long=0 db=\":\" key=\"x\"\n2\tcount=3 over=0 long=0 db=\":\" key=\"y y\"\nleft\t0\nseen\t8\n", body)
	require.Zero(t, meter.Watches())
}

// Whoever loses the right to look at requests is told nothing more, also by a call that waits.
func TestMonitorRights(t *testing.T) {
	m := httpapi.NewMeters()
	m.Meter = metrics.New(metrics.Options{Still: true})
	names := []string{"root", "anna"}
	s, path := guardedServerWith(t, names, httpapi.Options{Meters: m}, "allow root admin", "allow anna read,write")
	s.meter = m.Meter
	for n, name := range []string{"monitor", "hotkeys"} {
		c, other := s.dial(t), s.dial(t)
		began := time.Now()
		c.send(as("root", rpc(name, "seconds", "15", "command", "set")))
		require.Eventually(t, func() bool { return m.Meter.Watches() == 1 }, 10*time.Second, time.Millisecond)
		writeAccess(t, path, names, "allow root read", "allow anna read,write")
		s.access.Reload()
		require.Equal(t, "200 OK", other.do(as("anna", rpc("set", "key", "hidden", "value", "v"))).status)
		r := c.receive(false)
		require.Equal(t, "403 Forbidden", r.status, n)
		require.NotContains(t, r.body, "hidden")
		require.Less(t, time.Since(began), 10*time.Second, "the call does not wait for its end")
		require.Eventually(t, func() bool { return m.Meter.Watches() == 0 }, 10*time.Second, time.Millisecond, "nothing is collected for it")
		writeAccess(t, path, names, "allow root admin", "allow anna read,write")
		s.access.Reload()
	}
}
