package remote_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/services/counter"
)

// counters is a counter server for a test.
type counters struct {
	t    *testing.T
	addr string
	port string
	held *client.Counters // acquires without the tool
}

// startCounters runs a counter server until the test ends, or stop is called.
func startCounters(t *testing.T) (c *counters, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := counter.New(counter.Options{})
	s.Start(l)
	ended := false
	stop = func() {
		if !ended {
			ended = true
			require.NoError(t, s.Close())
		}
	}
	t.Cleanup(stop)
	c = &counters{t: t, addr: l.Addr().String()}
	_, c.port, err = net.SplitHostPort(c.addr)
	require.NoError(t, err)
	c.held, err = client.DialCounters(t.Context(), c.addr, client.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { c.held.Close() })
	return c, stop
}

func (c *counters) run(args ...string) result {
	c.t.Helper()
	return command(c.t, "input", append([]string{"counter", "-host", "127.0.0.1", "-port", c.port}, args...)...)
}

func TestCounterCalls(t *testing.T) {
	c, _ := startCounters(t)
	require.NoError(t, c.held.Acquire(t.Context(), "a b", 3, 5))
	require.NoError(t, c.held.Acquire(t.Context(), "A\xff", 2, 5))
	require.NoError(t, c.held.Release(t.Context(), "A\xff", 1))
	require.Equal(t, result{stdout: "3\n"}, c.run("get", "a b"))
	require.Equal(t, result{stdout: "A\xff\t1\t2\na b\t3\t3\n"}, c.run("dump"))
	require.Equal(t, `{"current":1,"maximum":2,"name_base64":"Qf8="}`+"\n"+`{"current":3,"maximum":3,"name":"a b"}`+"\n",
		c.run("-json", "dump").stdout)
	stats := c.run("stats").stdout
	require.Contains(t, stats, "\ntotal_objects: 2\n")
	require.Equal(t, 15, strings.Count(stats, "\n"))
	require.Contains(t, c.run("-json", "stats").stdout, `"total_objects":2`)
	require.Equal(t, result{exit: 1, stderr: "ktremotemgr: counter server: Not found\n"}, c.run("get", "x"))
	require.Equal(t, result{exit: 1, stderr: "ktremotemgr: counter server: Not acquired\n"}, c.run("release", "a b", "1"))
}

func TestCounterCommandLineThatCannotBeMeant(t *testing.T) {
	c, _ := startCounters(t)
	for _, args := range [][]string{
		{}, {"take"}, {"get"}, {"get", "a", "b"}, {"release", "a"}, {"release", "a", "-1"}, {"release", "a", "4294967296"},
		{"stats", "x"}, {"acquire", "a", "1", "2"}, {"acquire", "a", "1", "2", "--"}, {"acquire", "a", "1", "2", "true", "--"},
		{"acquire", "a", "x", "2", "--", "true"}, {"acquire", "a", "1", "1.5", "--", "true"},
	} {
		r := c.run(args...)
		require.Equal(t, 1, r.exit, args)
		require.Contains(t, r.stderr, "usage:", args)
	}
	require.Contains(t, c.run("--help").stdout, "default 11215")
}

func TestCounterAcquireRunsACommand(t *testing.T) {
	c, _ := startCounters(t)
	acquire := func(option string, words ...string) result {
		return c.run(append([]string{option, "acquire", "n", "2", "3", "--"}, words...)...)
	}
	require.Equal(t, result{stdout: "input done\n"}, acquire("-tout=9", "sh", "-c", `echo "$(cat) done"`))
	require.Equal(t, result{exit: 7, stderr: "oh\n"}, acquire("-tout=9", "sh", "-c", "echo oh >&2; exit 7"))
	require.Equal(t, 128+9, acquire("-tout=9", "sh", "-c", "kill -KILL $$").exit)
	r := acquire("-tout=9", "/no/such/command")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "/no/such/command")
	n, err := c.held.Get(t.Context(), "n")
	require.NoError(t, err)
	require.Zero(t, n, "all has been released when the tool ends")

	require.NoError(t, c.held.AcquireWait(t.Context(), "n", 2, 3))
	require.Equal(t, result{exit: 75, stderr: "ktremotemgr: counter server: Resource not available\n"}, acquire("-wait=0", "echo"))
	require.Equal(t, result{exit: 75, stderr: "ktremotemgr: the resources are not available within 50ms\n"}, acquire("-wait=0.05", "echo"))
	time.AfterFunc(100*time.Millisecond, func() { c.held.Close() })
	require.Equal(t, result{stdout: "got it\n"}, acquire("-wait=20", "echo", "got it"))
}

func TestCounterAcquireHandsOnSignals(t *testing.T) {
	c, _ := startCounters(t)
	tool := exec.CommandContext(t.Context(), os.Args[0], "counter", "-port", c.port, "acquire", "n", "1", "1", "--",
		"sh", "-c", "kill -INT $PPID; kill -TERM $PPID; exec sleep 60")
	tool.Env = append(os.Environ(), alone+"=1")
	_, err := tool.Output()
	failed, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, 128+15, failed.ExitCode())
}

func TestCounterAcquireThatIsLostEndsTheCommand(t *testing.T) {
	c, stop := startCounters(t)
	waiting := make(chan struct{})
	go func() { // ends with the command, which ends when the server does
		defer close(waiting)
		for n := uint32(0); n == 0; {
			n, _ = c.held.Get(t.Context(), "n")
		}
		stop()
	}()
	r := c.run("acquire", "n", "1", "1", "--", "sleep", "60")
	<-waiting
	require.Equal(t, 76, r.exit)
	require.Contains(t, r.stderr, "what was held is lost, so the command was told to end: ")
	r = c.run("get", "n")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "counter server 127.0.0.1:"+c.port)
}
