package server_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/access"
	"gotycoon/internal/freeport"
	"gotycoon/internal/needs"
	"gotycoon/server"
)

// fetch asks the admin listener.
func fetch(t *testing.T, addr, path string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// startAdmin runs a server with an admin listener, and returns the listener's address too.
func startAdmin(t *testing.T, change func(*server.Config)) (s *running, addr string) {
	t.Helper()
	addrs := make(chan string, 1)
	s = start(t, func(c *server.Config) {
		c.Admin.Addr = "127.0.0.1:0"
		c.Admin.Listening = func(addr string) { addrs <- addr }
		if change != nil {
			change(c)
		}
	})
	return s, <-addrs
}

// ready waits until the server says that it is ready, a moment after it listens.
func ready(t *testing.T, addr string) {
	t.Helper()
	eventually(t, func() bool { status, _ := fetch(t, addr, "/readyz"); return status == http.StatusOK })
}

// everything is a server with all its parts.
func everything(t *testing.T, c *server.Config) {
	t.Helper()
	dir := t.TempDir()
	c.Databases = []string{filepath.Join(dir, "a.kct"), ":"}
	c.UpdateLog, c.ServerID = filepath.Join(dir, "ulog"), 1
	c.RTSPath = filepath.Join(dir, "a.rts")
	c.Snapshots.Dir = filepath.Join(dir, "snapshots")
	c.Services.Database = filepath.Join(dir, "services.kct")
	c.Services.CounterPort, c.Services.LockPort = freeport.Take(t), freeport.Take(t)
	c.Services.SequencePort, c.Services.QuotaPort = freeport.Take(t), freeport.Take(t)
	c.Plugins.MemcachePort = freeport.Take(t)
	c.Forward, c.Members.Secret = true, secretFile(t, clusterSecret)
	c.Host = "127.0.0.1"
}

// sample returns the value of a metric, whose labels are as they are printed.
func sample(t *testing.T, text, name string) float64 {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			require.NoError(t, err)
			return value
		}
	}
	t.Fatalf("there is no %s in:\n%s", name, text)
	return 0
}

func TestMetricsOfAllParts(t *testing.T) {
	var ports server.ServicesConfig
	memcached := 0
	s, addr := startAdmin(t, func(c *server.Config) { everything(t, c); ports, memcached = c.Services, c.Plugins.MemcachePort })
	ready(t, addr)
	c := s.dial()
	c.send("PUT /secret HTTP/1.1\r\nContent-Length: 5\r\n\r\nvalue")
	status, _ := c.reply()
	require.Equal(t, 201, status)
	for _, path := range []string{"/secret", "/secret", "/missing", "/rpc/set?key=secret2&value=x", "/rpc/get?key=secret", "/rpc/nothing"} {
		c.get(path)
	}
	talk(t, memcached, "set a 0 0 1\r\nx\r\nget a\r\nget b\r\nnonsense\r\n", "ERROR\r\n")
	talk(t, ports.LockPort, "lock a\nnonsense\n", "nonsense\n"[:0])
	talk(t, ports.SequencePort, "GET /fetch HTTP/1.1\r\n\r\n", "200 OK")
	talk(t, ports.QuotaPort, "GET /increase?amt=7 HTTP/1.1\r\n\r\n", "200 OK")
	talk(t, ports.CounterPort, "\x90\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "")

	_, text := fetch(t, addr, "/metrics")
	for name, want := range map[string]float64{
		`gotycoon_requests_total{command="put",protocol="rest"}`:                            1,
		`gotycoon_requests_total{command="get",protocol="rest"}`:                            3,
		`gotycoon_request_failures_total{command="get",protocol="rest"}`:                    0,
		`gotycoon_requests_total{command="set",protocol="rpc"}`:                             1,
		`gotycoon_requests_total{command="unknown",protocol="rpc"}`:                         1,
		`gotycoon_request_failures_total{command="unknown",protocol="rpc"}`:                 1,
		`gotycoon_request_duration_seconds_count{command="get",protocol="rest"}`:            3,
		`gotycoon_request_duration_seconds_bucket{command="get",protocol="rest",le="+Inf"}`: 3,
		`gotycoon_requests_total{command="get",protocol="memcached"}`:                       2,
		`gotycoon_requests_total{command="unknown",protocol="memcached"}`:                   1,
		`gotycoon_memcached_lookups_total{operation="get",result="miss"}`:                   1,
		`gotycoon_requests_total{command="lock",protocol="lock"}`:                           1,
		`gotycoon_requests_total{command="fetch",protocol="sequence"}`:                      1,
		`gotycoon_requests_total{command="increase",protocol="quota"}`:                      1,
		`gotycoon_requests_total{command="noop",protocol="counter"}`:                        1,
		`gotycoon_record_misses_total{operation="get"}`:                                     1,
		`gotycoon_database_records{database="a.kct",index="0"}`:                             3,
		`gotycoon_connections{port="data"}`:                                                 1,
		`gotycoon_quota_remaining`:                                                          7,
		`gotycoon_services_primary`:                                                         1,
		`gotycoon_ready`:                                                                    1,
	} {
		require.InDelta(t, want, sample(t, text, name), 0, name)
	}
	requireDefined(t, text)
	require.NotContains(t, text, "secret", "keys are not in the metrics")
	checkWithPromtool(t, text)
	require.Zero(t, s.stop())
}

// talk sends a request to a port and reads until the answer has come.
func talk(t *testing.T, port int, request, answer string) {
	t.Helper()
	c, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(c, request)
	require.NoError(t, err)
	var got []byte
	for room := make([]byte, 1024); len(got) == 0 || !strings.Contains(string(got), answer); {
		n, err := c.Read(room)
		require.NoError(t, err)
		got = append(got, room[:n]...)
	}
}

// onlySometimes are metrics that need more than a server with all its parts.
var onlySometimes = regexp.MustCompile(`^gotycoon_(replication_(state|lag_|last_contact|applied|dropped)|replica|cluster|engine|backup_last|snapshot_timestamp|alarm_since|certificate)`)

// requireDefined checks that the metrics of a scrape and of the table are the same.
func requireDefined(t *testing.T, text string) {
	t.Helper()
	kinds := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (gotycoon_\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		kinds[m[1]] = m[2]
	}
	for _, d := range server.Metrics() {
		if _, there := kinds[d.Name]; there || !onlySometimes.MatchString(d.Name) {
			require.Equal(t, string(d.Kind), kinds[d.Name], d.Name)
		}
		delete(kinds, d.Name)
	}
	require.Empty(t, kinds, "every metric has a definition")
}

func checkWithPromtool(t *testing.T, text string) {
	t.Helper()
	promtool := needs.Perhaps(t, "prometheus", "promtool")
	if promtool == "" {
		return
	}
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = strings.NewReader(text)
	out, err := check.CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestMetricsAfterRestart: the listener of the data port comes and goes, the counters stay.
func TestMetricsAfterRestart(t *testing.T) {
	s, addr := startAdmin(t, nil)
	ready(t, addr)
	s.dial().get("/a")
	_, text := fetch(t, addr, "/metrics")
	require.InDelta(t, 1, sample(t, text, `gotycoon_requests_total{command="get",protocol="rest"}`), 0)
	require.InDelta(t, 1, sample(t, text, `gotycoon_connections_total{port="data"}`), 0)
}

// A server that was made read-only on purpose is ready: a load balancer must not take it out.
func TestReadOnlyServersAreReady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.kct")
	made := start(t, func(c *server.Config) { c.Databases = []string{path} })
	require.Zero(t, made.stop())
	_, addr := startAdmin(t, func(c *server.Config) { c.Databases, c.ReadOnly = []string{path}, true })
	ready(t, addr)
	_, text := fetch(t, addr, "/metrics")
	require.InDelta(t, 1, sample(t, text, "gotycoon_ready"), 0)
}

// TestReadyLag: a server whose master does not answer is behind.
func TestReadyLag(t *testing.T) {
	follow := func(limit time.Duration) string {
		rts := filepath.Join(t.TempDir(), "a.rts")
		require.NoError(t, os.WriteFile(rts, []byte("1000000000000000000\n"), 0o600)) // 2001
		_, addr := startAdmin(t, func(c *server.Config) {
			c.RTSPath, c.ServerID, c.MasterHost, c.MasterPort = rts, 2, "127.0.0.1", freeport.Take(t)
			c.Admin.ReadyLag = limit
		})
		return addr
	}
	addr := follow(time.Minute)
	eventually(t, func() bool {
		_, body := fetch(t, addr, "/readyz")
		return strings.HasPrefix(body, "this server is behind its master: ")
	})
	_, text := fetch(t, addr, "/metrics")
	require.Greater(t, sample(t, text, "gotycoon_replication_lag_seconds"), 1e6)
	ready(t, follow(0))
}

// TestAdminWhileStarting: probes are answered while the databases are not open yet.
func TestAdminWhileStarting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.kct")
	holder := start(t, func(c *server.Config) { c.Databases = []string{path} })
	addrs, exit := make(chan string, 1), make(chan int, 1)
	cfg := server.DefaultConfig()
	cfg.Port, cfg.Databases = 0, []string{path} // waits for the lock of the file
	cfg.Admin.Addr, cfg.Admin.Listening = "127.0.0.1:0", func(addr string) { addrs <- addr }
	listening := make(chan net.Addr, 1)
	cfg.Listening = func(a net.Addr) { listening <- a }
	var log buffer
	go func() { exit <- server.Run(t.Context(), cfg, &log, &log) }()
	addr := <-addrs
	status, body := fetch(t, addr, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "starting")
	status, _ = fetch(t, addr, "/livez")
	require.Equal(t, http.StatusOK, status)
	_, text := fetch(t, addr, "/metrics")
	require.InDelta(t, 0, sample(t, text, "gotycoon_ready"), 0)
	require.Zero(t, holder.stop(), holder.log.lines())
	select {
	case <-listening:
		ready(t, addr)
	case code := <-exit:
		t.Fatal(code, log.lines())
	}
	t.Cleanup(func() { <-exit }) // the test's context ends first
}

func TestSlowAndSampledRequests(t *testing.T) {
	s := start(t, func(c *server.Config) { c.Admin.Slow, c.Admin.Sample = time.Nanosecond, 2 })
	c := s.dial()
	for range 4 {
		c.get("/k%0aey")
	}
	require.Zero(t, s.stop())
	var slow, sampled, lines int
	for _, line := range s.log.lines() {
		switch {
		case strings.Contains(line, "slow operation: rest get db=: key=\"k\\ney\" in="):
			slow++
		case strings.Contains(line, "request: rest get db=: key=\"k\\ney\" in="):
			sampled++
		case strings.Contains(line, "GET /k"):
			lines++
		}
	}
	require.Equal(t, 4, slow)
	require.Equal(t, 2, sampled)
	require.Zero(t, lines, "a sample instead of a line for each")
}

func TestAdminPortInUse(t *testing.T) {
	_, addr := startAdmin(t, nil)
	var log, stderr buffer
	cfg := server.DefaultConfig()
	cfg.Port, cfg.Admin.Addr = 0, addr
	require.Equal(t, 1, server.Run(t.Context(), cfg, &log, &stderr))
	require.Contains(t, strings.Join(log.lines(), "\n"), "[ERROR]: -admin "+mask(addr))
}

// TestAdminAccess: the access file holds for the admin listener too. A stranger learns whether the
// server is ready, and no more.
func TestAdminAccess(t *testing.T) {
	hash, err := access.HashToken([]byte("a secret of 32 characters or so"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "access")
	require.NoError(t, os.WriteFile(path, []byte("token anna "+hash+"\nallow anna read\n"), 0o600))
	_, addr := startAdmin(t, func(c *server.Config) { c.Access.Path = path })
	ready(t, addr)
	ask := func(path, token string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, http.NoBody)
		require.NoError(t, err)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusUnauthorized, ask("/metrics", ""))
	require.Equal(t, http.StatusUnauthorized, ask("/metrics", "guess"))
	require.Equal(t, http.StatusOK, ask("/metrics", "a secret of 32 characters or so"))
	require.Equal(t, http.StatusForbidden, ask("/debug/pprof/", "a secret of 32 characters or so"))
	require.Equal(t, http.StatusOK, ask("/livez", ""))
}

// TestAdminTLS: the listener speaks TLS like the other ports, and knows clients by their
// certificates.
func TestAdminTLS(t *testing.T) {
	ca := authority(t)
	path := filepath.Join(t.TempDir(), "access")
	require.NoError(t, os.WriteFile(path, []byte("cert user\nallow user admin\n"), 0o600))
	_, addr := startAdmin(t, func(c *server.Config) {
		withTLS(c, ca)
		c.TLS.Client = server.TLSOptional
		c.Access.Path = path
	})
	ask := func(name, path string) int {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(t, ca, name)}}
		defer client.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+path, http.NoBody)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusOK, ask("", "/livez"))
	require.Equal(t, http.StatusUnauthorized, ask("", "/metrics"))
	require.Equal(t, http.StatusOK, ask("user", "/metrics"))
	require.Equal(t, http.StatusOK, ask("user", "/debug/pprof/"))
}

// TestMetricsOfReplication: a master knows its slave, and the slave how far it is.
func TestMetricsOfReplication(t *testing.T) {
	dir := t.TempDir()
	master, masterAddr := startAdmin(t, func(c *server.Config) { c.UpdateLog, c.ServerID = filepath.Join(dir, "ulog"), 1 })
	_, port, err := net.SplitHostPort(master.addr)
	require.NoError(t, err)
	_, slaveAddr := startAdmin(t, func(c *server.Config) {
		c.ServerID, c.MasterHost, c.RTSPath = 2, "127.0.0.1", filepath.Join(dir, "a.rts")
		c.MasterPort, err = strconv.Atoi(port)
		c.Admin.ReadyLag = patience
	})
	require.NoError(t, err)
	ready(t, masterAddr)
	master.dial().get("/rpc/set?key=a&value=b")
	eventually(t, func() bool {
		_, text := fetch(t, slaveAddr, "/metrics")
		return strings.Contains(text, `gotycoon_replication_state{state="streaming"} 1`) && strings.Contains(text, "\ngotycoon_replication_applied_total 1\n")
	})
	ready(t, slaveAddr)
	eventually(t, func() bool {
		_, text := fetch(t, masterAddr, "/metrics")
		return strings.Contains(text, "\ngotycoon_replicas 1\n") && strings.Contains(text, `gotycoon_replica_lag_records{peer="127.0.0.1",sid="2"} 0`)
	})
	for _, addr := range []string{masterAddr, slaveAddr} {
		_, text := fetch(t, addr, "/metrics")
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (gotycoon_repl\S+)`).FindAllStringSubmatch(text, -1) {
			require.Contains(t, names(), m[1])
		}
		checkWithPromtool(t, text)
	}
}

// names returns the names of all metrics.
func names() (all []string) {
	for _, d := range server.Metrics() {
		all = append(all, d.Name)
	}
	return all
}
