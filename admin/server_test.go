package admin_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"gotycoon/admin"
	"gotycoon/internal/klog/klogtest"
)

// start runs a server for a test.
func start(t *testing.T, o admin.Options) *admin.Server {
	t.Helper()
	o.Addr = "127.0.0.1:0"
	s, err := admin.New(o)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, s.Close())
	})
	return s
}

// get returns the answer to a GET.
func get(t *testing.T, s *admin.Server, path string, header ...string) (status int, body string, head http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String()+path, http.NoBody)
	require.NoError(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text), response.Header
}

func TestProbes(t *testing.T) {
	var failed error
	var reasons []string
	s := start(t, admin.Options{Live: func() error { return failed }, Ready: func() []string { return reasons }})
	for _, path := range []string{"/livez", "/readyz"} {
		status, body, _ := get(t, s, path)
		require.Equal(t, 200, status)
		require.Equal(t, "ok\n", body)
	}
	failed, reasons = errors.New("the log has failed"), []string{"restoring", "read-only"}
	status, body, _ := get(t, s, "/livez")
	require.Equal(t, 503, status)
	require.Equal(t, "the log has failed\n", body)
	status, body, _ = get(t, s, "/readyz")
	require.Equal(t, 503, status)
	require.Equal(t, "restoring\nread-only\n", body)
}

func TestMetricsVersionAndProfiles(t *testing.T) {
	made := prometheus.NewGauge(prometheus.GaugeOpts{Name: "first_things", Help: "Things."})
	s := start(t, admin.Options{Version: "1.2.3", Revision: "abc", Collectors: []prometheus.Collector{made}})
	later := prometheus.NewGauge(prometheus.GaugeOpts{Name: "later_things", Help: "Things."})
	require.NoError(t, s.Register(later))
	require.Error(t, s.Register(later), "a name can be used once")
	_, body, _ := get(t, s, "/metrics")
	require.Contains(t, body, "first_things 0")
	require.Contains(t, body, "later_things 0")
	_, body, _ = get(t, s, "/version")
	require.Regexp(t, `^gotycoon 1\.2\.3\ngo go.+\nrevision abc\n$`, body)
	status, body, _ := get(t, s, "/debug/pprof/goroutine?debug=1")
	require.Equal(t, 200, status)
	require.Contains(t, body, "goroutine profile")
	status, _, _ = get(t, s, "/no")
	require.Equal(t, 404, status)
}

// TestAccess shows who is let in where: a stranger learns the status and nothing else.
func TestAccess(t *testing.T) {
	s := start(t, admin.Options{
		Ready: func() []string { return []string{"secret reason"} },
		Authorize: func(r *http.Request, admin bool) error {
			user, _, _ := r.BasicAuth()
			switch {
			case user == "":
				return unknown{errors.New("who are you")}
			case admin && user != "root":
				return errors.New("only admins may")
			}
			return nil
		},
		Routes: func(s *admin.Server) {
			hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
			s.Handle("GET /open", admin.Open, hello)
			s.Handle("GET /read", admin.Read, hello)
			s.Handle("GET /admin", admin.Admin, hello)
		},
	})
	reader, root := "Basic cjp4", "Basic cm9vdDp4" // r:x and root:x
	for _, row := range []struct {
		path, user string
		status     int
	}{
		{"/open", "", 200}, {"/read", "", 401}, {"/admin", "", 401}, {"/metrics", "", 401}, {"/version", "", 401}, {"/debug/pprof/", "", 401},
		{"/open", reader, 200}, {"/read", reader, 200}, {"/admin", reader, 403}, {"/metrics", reader, 200}, {"/debug/pprof/", reader, 403},
		{"/read", root, 200}, {"/admin", root, 200}, {"/debug/pprof/", root, 200},
	} {
		status, _, head := get(t, s, row.path, "Authorization", row.user)
		require.Equal(t, row.status, status, row)
		require.Equal(t, row.status == 401, head.Get("WWW-Authenticate") != "")
	}
	status, body, _ := get(t, s, "/readyz")
	require.Equal(t, 503, status)
	require.NotContains(t, body, "secret")
	_, body, _ = get(t, s, "/readyz", "Authorization", reader)
	require.Contains(t, body, "secret reason")
}

// unknown is the error about a stranger.
type unknown struct{ error }

// Status is the HTTP status.
func (unknown) Status() int { return http.StatusUnauthorized }

func TestPortInUse(t *testing.T) {
	s := start(t, admin.Options{})
	_, err := admin.New(admin.Options{Addr: s.Addr().String()})
	require.ErrorContains(t, err, "opening the admin port")
}

func TestAPanicIsAnsweredAndLogged(t *testing.T) {
	var log bytes.Buffer
	s := start(t, admin.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.Handle("GET /page", admin.Read, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a mistake") }))
	status, body, _ := get(t, s, "/page")
	require.Equal(t, 500, status)
	require.Contains(t, body, "a fault of the server, its log has more: a mistake")
	require.Contains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "GET /page")
	status, _, _ = get(t, s, "/livez")
	require.Equal(t, 200, status)
}

// Connections that nothing is served on give their places up to new ones, those of the address that
// has most first. A new one is refused while all others are served.
func TestConnectionsOfTheListenerAreLimited(t *testing.T) {
	var log klogtest.Buffer
	hold, held := make(chan struct{}), make(chan struct{}, 3)
	s := start(t, admin.Options{MaxConns: 3, Logger: slog.New(slog.NewTextHandler(&log, nil)), Routes: func(s *admin.Server) {
		s.Handle("/hold", admin.Open, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			held <- struct{}{}
			<-hold
		}))
	}})
	dial := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
		return c
	}
	ask := func(c net.Conn, path string) {
		_, _ = c.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"))
	}
	served := func(c net.Conn) bool {
		ask(c, "/livez")
		_, err := c.Read(make([]byte, 1<<10))
		return err == nil
	}
	prober := dial("127.0.0.1")
	require.True(t, served(prober))
	idle := dial("127.0.0.2")
	require.True(t, served(idle))
	drip := dial("127.0.0.2")
	_, err := drip.Write([]byte("GET /livez HTTP/1.1\r\n"))
	require.NoError(t, err)
	for range 5 {
		require.True(t, served(dial("127.0.0.2")), "a new one takes the place of an older one of its address")
	}
	require.Contains(t, log.String(), "too many connections to the admin listener: limit=3 closed=1")
	require.True(t, served(prober), "another address keeps its connection")
	require.False(t, served(idle))
	require.False(t, served(drip))

	for range 3 {
		ask(dial("127.0.0.2"), "/hold")
		<-held
	}
	require.False(t, served(dial("127.0.0.1")), "requests that are served go on")
	close(hold)
	require.Eventually(t, func() bool { return served(dial("127.0.0.1")) }, 10*time.Second, time.Millisecond)
}

// The page of the command line has the arguments that it is given, and not those of the process.
func TestTheCommandLine(t *testing.T) {
	s := start(t, admin.Options{CommandLine: []string{"ktserver", "-pldb", "postgres://kt@db/kt"}})
	status, body, head := get(t, s, "/debug/pprof/cmdline")
	require.Equal(t, 200, status)
	require.Equal(t, "ktserver\x00-pldb\x00postgres://kt@db/kt", body)
	require.Equal(t, "text/plain; charset=utf-8", head.Get("Content-Type"))
	_, body, _ = get(t, start(t, admin.Options{}), "/debug/pprof/cmdline")
	require.Empty(t, body)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap?debug=1", "/debug/pprof/allocs?debug=1"} {
		status, _, _ = get(t, s, path)
		require.Equal(t, 200, status)
	}
}
