package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
	"gotycoon/internal/needs"
	"gotycoon/server"
)

const examples = "../packaging/examples/"

// throughPort sends one request on a new connection and returns the answer's body. A connection
// that is refused or cut is "": behind a load balancer that may be for a moment only.
func throughPort(t *testing.T, port int, path string) string {
	t.Helper()
	c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return ""
	}
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\n\r\n"); err != nil {
		return ""
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	return string(body)
}

// HAProxy with the example's configuration sends updates to the primary and reads to the replica,
// and finds the new primary after a takeover.
func TestExampleOfHAProxy(t *testing.T) {
	haproxy := needs.Program(t, "haproxy", "haproxy")
	dir := t.TempDir()
	a, aAdmin := startAdmin(t, func(c *server.Config) { c.UpdateLog, c.ServerID = filepath.Join(dir, "a"), 1 })
	b, bAdmin := startAdmin(t, func(c *server.Config) {
		c.UpdateLog, c.ServerID, c.RTSPath = filepath.Join(dir, "b"), 2, filepath.Join(dir, "rts")
		c.MasterHost, c.MasterPort = "127.0.0.1", a.port()
	})
	updates, reads := freeport.Take(t), freeport.Take(t)
	place := func(s *running, admin string) string {
		_, port, err := net.SplitHostPort(admin)
		require.NoError(t, err)
		return fmt.Sprintf("127.0.0.1:%d check port %s", s.port(), port)
	}
	text, err := os.ReadFile(examples + "haproxy.cfg")
	require.NoError(t, err)
	for _, r := range [][2]string{
		{"10.0.0.1:1978 check port 1990", place(a, aAdmin)}, {"10.0.0.2:1978 check port 1990", place(b, bAdmin)},
		{"10.0.0.3:1978 check port 1990", fmt.Sprintf("127.0.0.1:%d check port %d", freeport.Take(t), freeport.Take(t))},
		{"bind :1978", fmt.Sprintf("bind 127.0.0.1:%d", updates)}, {"bind :1979", fmt.Sprintf("bind 127.0.0.1:%d", reads)},
		{"inter 500ms", "inter 20ms"},
	} {
		require.Contains(t, string(text), r[0])
		text = bytes.ReplaceAll(text, []byte(r[0]), []byte(r[1]))
	}
	path := filepath.Join(dir, "haproxy.cfg")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	out, err := exec.CommandContext(t.Context(), haproxy, "-c", "-f", path).CombinedOutput()
	require.NoError(t, err, string(out))
	balancer := exec.CommandContext(t.Context(), haproxy, "-db", "-f", path)
	var said bytes.Buffer
	balancer.Stderr = &said
	require.NoError(t, balancer.Start())
	defer func() {
		_ = balancer.Process.Kill() // it may have ended
		_ = balancer.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	}()

	role := func(port int) string {
		report := throughPort(t, port, "/rpc/report")
		for line := range strings.Lines(report) {
			if role, ok := strings.CutPrefix(line, "repl_role\t"); ok {
				return strings.TrimSpace(role)
			}
		}
		if report == "" {
			return ""
		}
		return "primary" // and nothing else since its start
	}
	eventually(t, func() bool { return role(updates) == "primary" && role(reads) == "replica" })
	eventually(t, func() bool {
		return throughPort(t, updates, "/rpc/set?key=k&value=v") == "" && role(updates) == "primary"
	})
	eventually(t, func() bool { return throughPort(t, reads, "/rpc/get?key=k") == "value\tv\n" })
	require.Zero(t, a.stop())
	b.dial().get("/rpc/tune_replication")
	eventually(t, func() bool { return role(updates) == "primary" && role(reads) == "primary" })
	// The balancer may take a moment longer to notice that the former primary has gone.
	eventually(t, func() bool { return throughPort(t, updates, "/rpc/get?key=k") == "value\tv\n" })
}

// The example of a program for -on-role gives the address to a primary and takes it from others,
// however often it is called.
func TestExampleOfVirtualIP(t *testing.T) {
	needs.Program(t, "util-linux", "unshare")
	needs.Program(t, "iproute2", "ip")
	if out, err := exec.CommandContext(t.Context(), "unshare", "--net", "true").CombinedOutput(); err != nil {
		t.Skipf("a network of the test's own is needed: %s", out)
	}
	const script = `ip link set lo up; for role in none primary primary replica primary none; do
		"$0" $role none 0 ""; echo $role $(ip -o address show dev lo | grep -c 10.0.0.100/24); done`
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", "sh", "-euc", script, examples+"virtual-ip")
	cmd.Env = append(os.Environ(), "VIRTUAL_IP_DEVICE=lo", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	var shown []string
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "arping") { // loopback has no neighbours
			shown = append(shown, strings.TrimSpace(line))
		}
	}
	require.Equal(t, []string{"none 0", "primary 1", "primary 1", "replica 0", "primary 1", "none 0"}, shown)
}
