package tlsport_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/internal/tlsfiles"
	"gotycoon/internal/tlsfiles/testca"
	"gotycoon/internal/tlsport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for something that should happen at once.
const patience = 30 * time.Second

// log is a log that a test can read.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// port is a port of a guard, with an authority that has signed a server and a client "user".
type port struct {
	t     *testing.T
	ca    *testca.CA
	user  int64 // serial number
	guard *tlsport.Guard
	l     net.Listener
	log   log
}

func open(t *testing.T, change func(*tlsport.Options)) *port {
	t.Helper()
	p := &port{t: t}
	var err error
	p.ca, err = testca.New(t.TempDir(), "ca")
	require.NoError(t, err)
	_, err = p.ca.Issue(testca.Spec{Name: "server", Hosts: []string{"127.0.0.1"}})
	require.NoError(t, err)
	p.user, err = p.ca.Issue(testca.Spec{Name: "user", Hosts: []string{"user.example"}, Client: true})
	require.NoError(t, err)
	require.NoError(t, p.ca.Revoke("crl.pem"))
	files, err := tlsfiles.NewServer(tlsfiles.ServerOptions{Optional: true, Files: tlsfiles.Files{
		Cert: p.ca.Path("server.pem"), Key: p.ca.Path("server.key"), CA: p.ca.Path("ca.pem"), CRL: p.ca.Path("crl.pem"),
	}})
	require.NoError(t, err)
	o := tlsport.Options{Files: files, Logger: slog.New(slog.NewTextHandler(&p.log, nil))}
	if change != nil {
		change(&o)
	}
	p.guard = tlsport.NewGuard(o)
	t.Cleanup(p.guard.Close)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	p.l = p.guard.Listen(l)
	t.Cleanup(func() { p.l.Close() })
	return p
}

// dial connects without TLS.
func (p *port) dial() net.Conn {
	p.t.Helper()
	c, err := net.Dial("tcp4", p.l.Addr().String())
	require.NoError(p.t, err)
	p.t.Cleanup(func() { c.Close() })
	require.NoError(p.t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

// accept returns the server's side of the latest connection.
func (p *port) accept() *tlsport.Conn {
	p.t.Helper()
	c, err := p.l.Accept()
	require.NoError(p.t, err)
	p.t.Cleanup(func() { c.Close() })
	return c.(*tlsport.Conn)
}

// pair returns both sides of a connection over TLS. name is the name of the
// client's certificate, or empty.
func (p *port) pair(name string) (server *tlsport.Conn, client *tls.Conn) {
	p.t.Helper()
	files := tlsfiles.Files{CA: p.ca.Path("ca.pem")}
	if name != "" {
		files.Cert, files.Key = p.ca.Path(name+".pem"), p.ca.Path(name+".key")
	}
	c, err := tlsfiles.NewClient(tlsfiles.ClientOptions{Files: files})
	require.NoError(p.t, err)
	client = tls.Client(p.dial(), c.Config("127.0.0.1"))
	server = p.accept()
	shaken := make(chan error, 1)
	go func() { shaken <- client.Handshake() }()
	opened, err := server.Open()
	require.NoError(p.t, err)
	require.NoError(p.t, <-shaken)
	require.Same(p.t, server, opened)
	return server, client
}

func read(t *testing.T, c io.Reader, n int) string {
	t.Helper()
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	require.NoError(t, err)
	return string(b)
}

func send(t *testing.T, c io.Writer, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

func spec(name string) testca.Spec { return testca.Spec{Name: name, Client: true} }
