package compat

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

// queueClient is a connection to a message queue.
type queueClient struct {
	net.Conn
	r *bufio.Reader
}

func dialQueue(t *testing.T, port int) *queueClient {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	awaitListening(t, addr)
	c, err := net.Dial("tcp4", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return &queueClient{c, bufio.NewReader(c)}
}

// ask sends a request, and expects a reply; line feeds stand for line ends.
func (c *queueClient) ask(t *testing.T, request, reply string) {
	t.Helper()
	_, err := c.Write([]byte(strings.ReplaceAll(request, "\n", "\r\n")))
	require.NoError(t, err)
	for want := range strings.Lines(reply) {
		line, err := c.r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, strings.TrimSuffix(want, "\n"), strings.TrimSuffix(line, "\r\n"))
	}
}

// What a server has when it is killed is delivered by another one, in its old order, within the time
// of a lease and a moment.
func TestQueueOfAServerThatIsKilled(t *testing.T) {
	t.Parallel()
	url := newEngine(t, []string{"%"})
	bin := ktproc.BuildPlain(t, "ktserver")
	var servers []*ktproc.Server
	var ports []int
	for range 2 {
		port := freeport.Take(t)
		args := []string{"-pldb", url, "-memcache-port", fmt.Sprint(port), "-memcache-opts", "q", "-memcache-qtout", "40"}
		servers = append(servers, ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), Args: args}))
		ports = append(ports, port)
	}
	holder, other := dialQueue(t, ports[0]), dialQueue(t, ports[1])
	for i := range 3 {
		holder.ask(t, fmt.Sprintf("set job 0 0 1\n%d\n", i), "STORED\n")
	}
	for i := range 2 {
		holder.ask(t, "get job\n", fmt.Sprintf("VALUE job 0 1\n%d\nEND\n", i))
	}
	other.ask(t, "get job\ndelete job\n", "VALUE job 0 1\n2\nEND\nDELETED\n")
	killed := time.Now()
	servers[0].Kill()
	for i := range 2 {
		other.ask(t, "get job\n", fmt.Sprintf("VALUE job 0 1\n%d\nEND\n", i))
		require.Less(t, time.Since(killed), 20*time.Second, "a lease lasts ten seconds, and this machine may be busy")
	}
	t.Logf("delivered %v after the kill", time.Since(killed).Round(time.Millisecond))
	other.ask(t, "delete job\ndelete job\n", "DELETED\nDELETED\n")
	_, count, err := callRPC(servers[1].Addr(), "status", nil)
	require.NoError(t, err)
	require.Equal(t, "0", count["count"])
}
