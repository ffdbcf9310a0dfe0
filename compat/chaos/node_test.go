package chaos

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
	"gotycoon/server"
)

// settings are what a server process is started with. They reach it in the environment.
type settings struct {
	Database   string
	SID        int
	MasterPort int           // 0: none
	ClockBack  time.Duration // how far its clock is behind
}

const variable = "GOTYCOON_CHAOS_NODE"

// TestMain is also the server: a process of its own with another clock.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(variable); ok {
		os.Exit(serve(text))
	}
	os.Exit(m.Run())
}

func serve(text string) int {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return 1
	}
	cfg := server.DefaultConfig()
	cfg.Port = port(os.Args)
	cfg.Databases, cfg.ServerID, cfg.UpdateLog, cfg.RTSPath = []string{s.Database}, s.SID, "ulog", "master.rts"
	cfg.CheckpointSize, cfg.MasterInterval = 64<<10, 0
	if s.MasterPort != 0 {
		cfg.MasterHost, cfg.MasterPort = "127.0.0.1", s.MasterPort
	}
	cfg.Now = func() time.Time { return time.Now().Add(-s.ClockBack) }
	return server.Run(context.Background(), cfg, os.Stdout, os.Stderr)
}

// node is a server that can be killed and started again with what it has on the disk.
type node struct {
	settings
	t    *testing.T
	dir  string
	port int
	proc *ktproc.Server
}

func newNode(t *testing.T, s settings) *node {
	t.Helper()
	n := &node{settings: s, t: t, dir: t.TempDir(), port: freeport.Take(t)}
	n.start()
	return n
}

func (n *node) start() {
	n.t.Helper()
	text, err := json.Marshal(n.settings)
	require.NoError(n.t, err)
	exe, err := os.Executable()
	require.NoError(n.t, err)
	n.proc = ktproc.Launch(n.t, ktproc.Options{Bin: exe, Dir: n.dir, Env: []string{variable + "=" + string(text)}}, n.port)
	ok := n.proc.AwaitListening()
	require.True(n.t, ok, "%s", n.proc.Output())
}

// kill ends the process as kill -9 does, and starts another with its clock so far behind.
func (n *node) kill(clockBack time.Duration) {
	n.t.Helper()
	n.proc.Kill()
	n.ClockBack = clockBack
	n.start()
}

// addr stays the same when the process is another one.
func (n *node) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)) }

func (n *node) client() *client.Client {
	return client.New(n.addr(), client.Options{Timeout: 5 * time.Second})
}

// contents are all records with their expiration times.
func (n *node) contents() map[string]string {
	n.t.Helper()
	c := n.client()
	defer c.Close()
	found := map[string]string{}
	for r, err := range c.DB("").All(n.t.Context()) {
		require.NoError(n.t, err)
		found[r.Key] = string(r.Value) + r.Expires.UTC().Format(" 2006-01-02T15:04:05")
	}
	return found
}

// sameContents waits until all nodes hold the same, and returns it.
func sameContents(t *testing.T, nodes ...*node) map[string]string {
	t.Helper()
	var last []map[string]string
	same := func() bool {
		last = nil
		for _, n := range nodes {
			last = append(last, n.contents())
			if !maps.Equal(last[0], last[len(last)-1]) {
				return false
			}
		}
		return true
	}
	if !eventually(same) {
		for i, n := range nodes {
			if i < len(last) {
				t.Logf("server %d has %d records; its log: %s", n.SID, len(last[i]), tail(n.proc.Output()))
			}
		}
		require.Equal(t, last[0], last[len(last)-1], "the servers never came to hold the same")
	}
	return last[0]
}

// patience is how long a condition may take to become true once the network is healthy.
const patience = 90 * time.Second

func eventually(condition func() bool) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) { //lint:sleep other processes can only be polled
		if condition() {
			return true
		}
	}
	return false
}

func tail(text string) string { return text[max(0, len(text)-3000):] }

func port(args []string) int {
	for i, arg := range args {
		if arg == "-port" && i+1 < len(args) {
			var n int
			_ = json.Unmarshal([]byte(args[i+1]), &n)
			return n
		}
	}
	return 0
}
