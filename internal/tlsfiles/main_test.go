package tlsfiles_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/internal/klog/klogtest"
	"gotycoon/internal/tlsfiles"
	"gotycoon/internal/tlsfiles/testca"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for something that should happen at once.
const patience = 30 * time.Second

// log is a log that a test can read.
type log struct{ klogtest.Buffer }

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func newCA(t *testing.T, dir, name string) *testca.CA {
	t.Helper()
	ca, err := testca.New(dir, name)
	require.NoError(t, err)
	return ca
}

func issue(t *testing.T, ca *testca.CA, s testca.Spec) int64 {
	t.Helper()
	serial, err := ca.Issue(s)
	require.NoError(t, err)
	return serial
}

// files returns the server's files of an authority in a directory.
func files(ca *testca.CA) tlsfiles.Files {
	return tlsfiles.Files{Cert: ca.Path("server.pem"), Key: ca.Path("server.key")}
}

func issueServer(t *testing.T, ca *testca.CA) int64 {
	t.Helper()
	return issue(t, ca, testca.Spec{Name: "server", Hosts: []string{"localhost", "127.0.0.1"}})
}

// shake does a handshake over a pipe of sockets and returns what both sides say.
func shake(t *testing.T, server, client *tls.Config) (state tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ended := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer c.Close()
		secure := tls.Server(c, server)
		err = secure.Handshake()
		if err == nil {
			_, err = secure.Write([]byte("x"))
		}
		ended <- err
	}()
	c, err := net.Dial("tcp4", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	secure := tls.Client(c, client)
	if clientErr = secure.Handshake(); clientErr == nil {
		_, clientErr = io.ReadFull(secure, make([]byte, 1)) // with TLS 1.3 a refusal comes after the handshake
	}
	c.Close()
	return secure.ConnectionState(), <-ended, clientErr
}

func clientConfig(t *testing.T, o tlsfiles.ClientOptions) *tls.Config {
	t.Helper()
	c, err := tlsfiles.NewClient(o)
	require.NoError(t, err)
	return c.Config("localhost")
}

func server(t *testing.T, o tlsfiles.ServerOptions) *tlsfiles.Server {
	t.Helper()
	s, err := tlsfiles.NewServer(o)
	require.NoError(t, err)
	return s
}

func parse(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(path+".pem", path+".key")
	require.NoError(t, err)
	return pair.Leaf
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
