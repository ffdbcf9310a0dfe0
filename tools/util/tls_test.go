package util_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/tlsfiles"
	"gotycoon/internal/tlsfiles/testca"
)

// secureServer asks for a client certificate and answers with the name in it. It returns the
// options that a client needs.
func secureServer(t *testing.T, h http.HandlerFunc) (s *httptest.Server, options []string) {
	t.Helper()
	ca, err := testca.New(t.TempDir(), "ca")
	require.NoError(t, err)
	for _, spec := range []testca.Spec{{Name: "server", Hosts: []string{"db.example"}}, {Name: "user", Client: true}} {
		_, err := ca.Issue(spec)
		require.NoError(t, err)
	}
	files, err := tlsfiles.NewServer(tlsfiles.ServerOptions{
		Files: tlsfiles.Files{Cert: ca.Path("server.pem"), Key: ca.Path("server.key"), CA: ca.Path("ca.pem")}})
	require.NoError(t, err)
	s = httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Listener = tls.NewListener(s.Listener, files.Config())
	s.Start()
	t.Cleanup(s.Close)
	return s, []string{"-tls-ca", ca.Path("ca.pem"), "-tls-cert", ca.Path("user.pem"), "-tls-key", ca.Path("user.key"), "-tls-name", "db.example"}
}

func TestHTTPOverTLS(t *testing.T) {
	s, options := secureServer(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	})
	url := "https://" + s.Listener.Addr().String()
	require.Equal(t, "user", succeed(t, "", append(append([]string{"http"}, options...), url)...))
	require.Contains(t, command("", "http", url).stderr, "certificate")
	t.Setenv("GOTYCOON_TLS_CA", "none")
	require.Contains(t, command("", "http", url).stderr, "none: no such file")
	require.NotContains(t, command("", "http", "http://127.0.0.1:1/").stderr, "no such file", "where no TLS is spoken")
}

func TestRPCOverTLS(t *testing.T) {
	s, options := secureServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/tab-separated-values")
		fmt.Fprint(w, "a\tb\n")
	})
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	args := []string{"rpc", "-host", host, "-port", port}
	require.Contains(t, succeed(t, "", append(append(args, options...), "echo")...), "a\tb\n")
	require.Contains(t, command("", append(args, "-tls", "echo")...).stderr, "certificate")
}
