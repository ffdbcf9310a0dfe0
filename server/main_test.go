package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/internal/freeport"
	"gotycoon/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for something that should happen at once.
const patience = 30 * time.Second

// buffer is a log that a test can read while the server writes.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// lines are the log lines without their times, and with masks in place of ports, numbers and so on.
func (b *buffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := strings.TrimSuffix(b.text.String(), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = mask(line)
	}
	return lines
}

func mask(line string) string {
	for _, m := range []struct{ pattern, with string }{
		{`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d): `, ""},
		{`127\.0\.0\.1:\d+`, "PEER"},
		{`pid=\d+`, "pid=N"},
		{`fd=\d+`, "fd=N"},
		{`expr=:\d+`, "expr=:PORT"},
		{`durability: .*`, "durability"},
		{`protected: .*`, "protected"},
	} {
		line = regexp.MustCompile(m.pattern).ReplaceAllString(line, m.with)
	}
	return line
}

// running is a server in this process.
type running struct {
	t      *testing.T
	addr   string
	log    buffer
	cancel context.CancelFunc
	exit   chan int
}

// start runs a server on a port that stays its own until the end of the test: the server may listen
// again on SIGUSR1, and nobody else may answer there when the server has stopped.
func start(t *testing.T, change func(*server.Config)) *running {
	t.Helper()
	cfg := server.DefaultConfig()
	cfg.Port = freeport.Take(t)
	if change != nil {
		change(&cfg)
	}
	addrs := make(chan net.Addr, 1)
	cfg.Listening = func(a net.Addr) { addrs <- a }
	ctx, cancel := context.WithCancel(context.Background())
	s := &running{t: t, cancel: cancel, exit: make(chan int, 1)}
	var stderr buffer
	go func() { s.exit <- server.Run(ctx, cfg, &s.log, &stderr) }()
	t.Cleanup(s.cleanUp)
	select {
	case a := <-addrs:
		s.addr = fmt.Sprintf("127.0.0.1:%d", a.(*net.TCPAddr).Port)
	case code := <-s.exit:
		s.exit <- code
		t.Fatalf("exit code %d: %v %v", code, stderr.lines(), s.log.lines())
	}
	return s
}

func (s *running) cleanUp() {
	s.cancel()
	http.DefaultClient.CloseIdleConnections()
	s.exit <- s.wait()
}

// stop ends the server and returns its exit code.
func (s *running) stop() int {
	s.t.Helper()
	s.cancel()
	code := s.wait()
	s.exit <- code
	return code
}

func (s *running) wait() int {
	select {
	case code := <-s.exit:
		return code
	case <-time.After(patience):
		s.t.Error("the server does not stop")
		return -1
	}
}

// dial opens a connection that ends with the test.
func (s *running) dial() *client {
	s.t.Helper()
	c, err := net.Dial("tcp4", s.addr)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	require.NoError(s.t, c.SetDeadline(time.Now().Add(patience)))
	return &client{t: s.t, Conn: c, in: bufio.NewReader(c)}
}

// client is a raw connection.
type client struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func (c *client) send(text string) {
	c.t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(c.t, err)
}

// reply reads one HTTP reply, for which the server has its time: a test may make thousands of
// requests.
func (c *client) reply() (status int, body string) {
	c.t.Helper()
	require.NoError(c.t, c.SetDeadline(time.Now().Add(patience)))
	r, err := http.ReadResponse(c.in, nil)
	require.NoError(c.t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(c.t, err)
	return r.StatusCode, string(text)
}

// get sends one request and returns the reply.
func (c *client) get(path string) (status int, body string) {
	c.t.Helper()
	c.send("GET " + path + " HTTP/1.1\r\n\r\n")
	return c.reply()
}

// requireEOF checks that the server has closed the connection in order.
func (c *client) requireEOF() {
	c.t.Helper()
	_, err := c.in.ReadByte()
	require.ErrorIs(c.t, err, io.EOF)
}

// eventually waits for a condition.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, time.Millisecond)
}
