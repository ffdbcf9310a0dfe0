package client_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/client"
	"gotycoon/server"
)

// addr is the server that tests and examples talk to: databases 0 ":" (hash) and 1 "tree"
// (ordered), with an update log.
var addr string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "client-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	cfg := server.DefaultConfig()
	cfg.Databases = []string{":", "tree#type=%"}
	cfg.UpdateLog, cfg.ServerID = dir, 1
	s := startServer(cfg)
	addr = s.addr
	code := engine.Main(m)
	s.stop()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// testServer is a server in this process.
type testServer struct {
	addr   string
	cancel context.CancelFunc
	ended  chan int
}

func startServer(cfg server.Config) *testServer {
	ctx, cancel := context.WithCancel(context.Background())
	s := &testServer{cancel: cancel, ended: make(chan int, 1)}
	listening := make(chan net.Addr, 1)
	cfg.Listening = func(a net.Addr) { listening <- a }
	cfg.Port, cfg.LogLevel = 0, slog.LevelError
	var said bytes.Buffer
	go func() { s.ended <- server.Run(ctx, cfg, &said, &said) }()
	select {
	case a := <-listening:
		_, port, _ := net.SplitHostPort(a.String())
		s.addr = "127.0.0.1:" + port
	case code := <-s.ended:
		panic(fmt.Sprintf("the server does not start: exit code %d: %s", code, &said))
	}
	return s
}

func (s *testServer) stop() int {
	s.cancel()
	return <-s.ended
}

// open returns a client, and the hash and the tree database, both empty.
func open(t *testing.T) (c *client.Client, hash, tree *client.DB) {
	t.Helper()
	c = client.New(addr, client.Options{})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	hash, tree = c.DB(""), c.DB("tree")
	require.NoError(t, hash.Clear(t.Context()))
	require.NoError(t, tree.Clear(t.Context()))
	return c, hash, tree
}
