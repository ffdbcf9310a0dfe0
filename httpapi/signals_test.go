package httpapi_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/httpapi"
)

// eventually signals name until as many as expected were waiting for it.
func eventually(t *testing.T, g *httpapi.Signals, name string, waiting int) {
	t.Helper()
	require.Eventually(t, func() bool { return g.Waiting(name) == waiting }, 5*time.Second, time.Millisecond)
}

func TestWaitAndSignal(t *testing.T) {
	s := newServer(t)
	a, b := s.dial(t), s.dial(t)
	a.send(rpc("get", "WAIT", "go", "WAITTIME", "10", "key", "k"))
	eventually(t, s.signals, "go", 1)
	require.Equal(t, "SIGNALED\t0\n", b.ok("void", "SIGNAL", "gone"))
	require.Equal(t, "SIGNALED\t1\n", b.ok("set", "SIGNAL", "go", "key", "k", "value", "v"))
	require.Equal(t, "value\tv\n", a.receive(false).body)
}

func TestSignalWakesOneOrAll(t *testing.T) {
	s := newServer(t)
	var waiters []*client
	for i := range 3 {
		c := s.dial(t).send(rpc("void", "WAIT", "", "WAITTIME", "10"))
		waiters = append(waiters, c)
		eventually(t, s.signals, "", i+1)
	}
	c := s.dial(t)
	require.Equal(t, "SIGNALED\t3\n", c.ok("void", "SIGNAL", ""))
	require.Equal(t, "200 OK", waiters[0].receive(false).status)
	require.Equal(t, "SIGNALED\t2\n", c.ok("void", "SIGNAL", "", "SIGNALBROAD", "false"))
	require.Equal(t, "200 OK", waiters[1].receive(false).status)
	require.Equal(t, "200 OK", waiters[2].receive(false).status)
	require.Equal(t, "SIGNALED\t0\n", c.ok("void", "SIGNAL", ""))
}

func TestWaitEnds(t *testing.T) {
	s := newServer(t)
	c := s.dial(t)
	status, body := c.call("set", "WAIT", "x", "WAITTIME", "0.01", "SIGNAL", "y", "DB", "nosuch")
	require.Equal(t, "503", status)
	require.Equal(t, "ERROR\tthe condition timed out\n", body)
	require.Zero(t, s.signals.Waiting("x"))

	c.send(rpc("void", "WAIT", "x"))
	eventually(t, s.signals, "x", 1)
	s.signals.Shutdown()
	require.Equal(t, "503 Service Unavailable", c.receive(false).status)
	status, _ = c.call("void", "WAIT", "x")
	require.Equal(t, "503", status, "nobody waits after the shutdown")
}

// The replies to earlier pipelined requests are sent before a request waits.
func TestWaitSendsEarlierReplies(t *testing.T) {
	s := newServer(t)
	c := s.dial(t).send(rpc("set", "key", "a", "value", "1") + rpc("void", "WAIT", "x", "WAITTIME", "10"))
	require.Equal(t, "200 OK", c.receive(false).status)
	eventually(t, s.signals, "x", 1)
	s.signals.Signal("x", false)
	require.Equal(t, "200 OK", c.receive(false).status)
}

func TestSignalsAreSentWhateverHappens(t *testing.T) {
	c := newServer(t).dial(t)
	_, body := c.call("set", "SIGNAL", "x")
	require.Equal(t, "ERROR\tinvalid parameters\nSIGNALED\t0\n", body)
	require.Equal(t, "SIGNAL\tx\nSIGNALED\t0\n", c.ok("echo", "SIGNAL", "x", "SIGNALED", "mine"))
	require.Empty(t, c.ok("void", "SIGNALBROAD", ""))
	require.Equal(t, "404 Not Found", c.do("GET /k?WAIT=x&WAITTIME=5 HTTP/1.1\r\n\r\n").status)
}
