//go:build linux

package server_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gotycoon/server"
)

// farAway is a network namespace with a cable to the namespace of the test: for the server it is
// another machine.
type farAway struct {
	t    *testing.T
	name string
	here string // address of this end of the cable
}

// newFarAway makes the namespace, which ends with the test. The test is skipped where it may not
// make namespaces.
func newFarAway(t *testing.T) *farAway {
	t.Helper()
	id := os.Getpid() % 4096
	n := &farAway{t: t, name: fmt.Sprintf("gotycoon%d", id), here: fmt.Sprintf("10.213.%d.%d", id/16, id%16*16+1)}
	if out, err := exec.Command("ip", "netns", "add", n.name).CombinedOutput(); err != nil {
		t.Skipf("no network namespace can be made: %v: %s", err, out)
	}
	t.Cleanup(func() { n.ip("netns", "delete", n.name) })
	there, cable := fmt.Sprintf("10.213.%d.%d", id/16, id%16*16+2), fmt.Sprintf("gt%dh", id)
	if out, err := exec.Command("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", n.name).CombinedOutput(); err != nil {
		t.Skipf("no pair of network devices can be made: %v: %s", err, out)
	}
	t.Cleanup(func() { n.ip("link", "delete", cable) })
	n.ip("addr", "add", n.here+"/28", "dev", cable)
	n.ip("link", "set", cable, "up")
	n.ip("-n", n.name, "addr", "add", there+"/28", "dev", "eth0")
	n.ip("-n", n.name, "link", "set", "eth0", "up")
	return n
}

func (n *farAway) ip(args ...string) {
	n.t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(n.t, err, "%v: %s", args, out)
}

// dial connects from the namespace to a port of this machine.
func (n *farAway) dial(port int) net.Conn {
	n.t.Helper()
	type result struct {
		c   net.Conn
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		var r result
		if r.err = n.enter(); r.err == nil {
			r.c, r.err = net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.ParseIP(n.here), Port: port})
		}
		done <- r
	}()
	r := <-done
	require.NoError(n.t, r.err)
	return r.c
}

func (n *farAway) enter() error {
	f, err := os.Open("/run/netns/" + n.name)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
}

// By default a peer on another machine gets nothing on any port but the advice how to open the
// server. A peer on this machine gets everything, also under the machine's other addresses.
func TestProtectionByDefault(t *testing.T) {
	far := newFarAway(t)
	var ports map[string]int
	s := start(t, func(c *server.Config) { ports = openPorts(t, c) })
	ports["data"] = s.port()
	c := s.dial()
	status, _ := c.get("/rpc/set?key=secret&value=hunter2")
	require.Equal(t, 200, status)
	nearby := func(port int) net.Conn {
		c, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.ParseIP(far.here), Port: port})
		require.NoError(t, err)
		return c
	}
	for name, requests := range asks {
		for i, request := range requests {
			answer := exchange(t, far.dial, ports[name], request)
			require.True(t, isRefused(answer), "%s: %q: %q", name, request, answer)
			require.NotContains(t, answer, "hunter2")
			if answer != "\xbf" {
				require.Contains(t, answer, "-host 0.0.0.0", "%s: %q", name, request)
				require.Contains(t, answer, "-access FILE", "%s: %q", name, request)
			}
			if name != "data" || i < 2 { // others change something
				require.False(t, isRefused(exchange(t, nearby, ports[name], request)), "%s: %q", name, request)
			}
		}
	}
	status, value := s.dial().get("/secret")
	require.Equal(t, 200, status)
	require.Equal(t, "hunter2", value)
	require.Contains(t, strings.Join(s.log.lines(), "\n"), "[SYSTEM]: access: refused 10.213.")
}

func TestAHostOpensTheServer(t *testing.T) {
	far := newFarAway(t)
	var ports map[string]int
	s := start(t, func(c *server.Config) { c.Host = "0.0.0.0"; ports = openPorts(t, c) })
	ports["data"] = s.port()
	for name, requests := range asks {
		require.False(t, isRefused(exchange(t, far.dial, ports[name], requests[0])), name)
	}
	require.NotContains(t, strings.Join(s.log.lines(), "\n"), "protected")
}

// An address of the data port does not open profiles and metrics: the admin listener needs an
// address of its own.
func TestAHostDoesNotOpenTheAdminListener(t *testing.T) {
	far := newFarAway(t)
	ask := func(addr, path string) string {
		_, port, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		number, err := strconv.Atoi(port)
		require.NoError(t, err)
		return exchange(t, far.dial, number, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	}
	_, addr := startAdmin(t, func(c *server.Config) { c.Host, c.Admin.Addr = "0.0.0.0", ":0" })
	require.Contains(t, ask(addr, "/livez"), "HTTP/1.1 200 OK")
	for _, path := range []string{"/metrics", "/version", "/debug/pprof/", "/debug/pprof/cmdline"} {
		answer := ask(addr, path)
		require.Contains(t, answer, "HTTP/1.1 403", path)
		require.Contains(t, answer, "-admin 0.0.0.0:PORT", path)
	}
	_, addr = startAdmin(t, func(c *server.Config) { c.Admin.Addr = "0.0.0.0:0" })
	require.Contains(t, ask(addr, "/metrics"), "HTTP/1.1 200 OK")
}

// An address in the configuration of the memcached plug-in opens its port, as -host opens the data
// port.
func TestAHostOfThePlugInOpensIt(t *testing.T) {
	far := newFarAway(t)
	var ports map[string]int
	s := start(t, func(c *server.Config) {
		ports = openPorts(t, c)
		c.Plugins.MemcachePort = 0
		c.Plugins.Server, c.Plugins.Expr = "ktplugservmemc.so", fmt.Sprintf("host=0.0.0.0#port=%d", ports["memcache"])
	})
	require.Equal(t, "END\r\n", exchange(t, far.dial, ports["memcache"], "get secret\r\n"))
	require.True(t, isRefused(exchange(t, far.dial, s.port(), asks["data"][0])))
}

// With an access file a peer has the rights that the file gives to the peer's network.
func TestNetworksOfAnAccessFile(t *testing.T) {
	far := newFarAway(t)
	path := t.TempDir() + "/access"
	accessFile(t, path, "", "allow anyone read from=10.213.0.0/16", "allow anyone read,write from=local")
	s := start(t, func(c *server.Config) { c.Access.Path = path })
	get, set := "GET /rpc/report HTTP/1.1\r\n\r\n", "GET /rpc/set?key=a&value=b HTTP/1.1\r\n\r\n"
	require.Contains(t, exchange(t, far.dial, s.port(), get), "200 OK")
	require.True(t, isRefused(exchange(t, far.dial, s.port(), set)))
	require.Contains(t, exchange(t, dialHere(t), s.port(), set), "200 OK")
}

// An address of the admin listener's own opens the metrics. The console shows other machines no
// databases where the data port is protected by default.
func TestAnAdminAddressDoesNotOpenTheDatabases(t *testing.T) {
	far := newFarAway(t)
	_, addr := startAdmin(t, func(c *server.Config) { c.Admin.Addr = "0.0.0.0:0" })
	_, text, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	ask := func(path string) string {
		return exchange(t, far.dial, port, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	}
	require.Contains(t, ask("/metrics"), "HTTP/1.1 200")
	for _, path := range []string{"/api/databases", "/api/databases/0/records", "/api/databases/0/backup", "/api/server"} {
		require.Contains(t, ask(path), "HTTP/1.1 403", path)
	}
}
