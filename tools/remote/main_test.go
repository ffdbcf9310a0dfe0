package remote_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/internal/klog"
	"gotycoon/internal/klog/klogtest"
	"gotycoon/server"
	"gotycoon/tools/remote"
)

// port is the port of a server in this process, with the databases 0 ":" (hash) and 1 "tree"
// (ordered).
var port string

// alone makes the test binary the tool, for tests that send it signals: in the test's process the
// server would obey them too.
const alone = "KTREMOTEMGR_TEST_ALONE"

func TestMain(m *testing.M) {
	if os.Getenv(alone) != "" {
		os.Exit(remote.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	listening := make(chan net.Addr, 1)
	cfg := server.DefaultConfig()
	cfg.Databases = []string{":", "tree#type=%"}
	cfg.Listening = func(a net.Addr) { listening <- a }
	cfg.Port, cfg.LogLevel = 0, klog.LevelSilent
	cfg.Reload.Settings = []server.Setting{{Name: "port", Value: "0", Source: "default"}, {Name: "max-size", Value: "1g", Source: "command line", Reload: true}}
	cfg.Reload.Change = func(all []server.Setting, name, value string) (server.Config, error) {
		next := cfg
		next.Reload.Settings = []server.Setting{all[0], {Name: name, Value: value, Source: "config set", Reload: true}}
		return next, nil
	}
	ended := make(chan int, 1)
	go func() { ended <- server.Run(ctx, cfg, io.Discard, io.Discard) }()
	_, port, _ = net.SplitHostPort((<-listening).String())
	code := m.Run()
	_ = os.RemoveAll(serverBuilt.dir) // empty when no test has built it
	cancel()
	<-ended
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// result is what a run gave.
type result struct {
	exit           int
	stdout, stderr string
}

// command runs the tool in this process.
func command(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	exit := remote.Main(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	return result{exit: exit, stdout: stdout.String(), stderr: stderr.String()}
}

// at puts the option for the server of the tests behind the name of a sub-command.
func at(name string, args ...string) []string {
	return append([]string{name, "-port", port}, args...)
}

// succeed runs a sub-command on the server of the tests and returns what it prints.
func succeed(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	r := command(t, stdin, at(name, args...)...)
	require.Zero(t, r.exit, r.stderr)
	require.Empty(t, r.stderr)
	return r.stdout
}

// clear empties the databases.
func clear(t *testing.T) {
	t.Helper()
	succeed(t, "", "clear")
	succeed(t, "", "clear", "-db", "tree")
}

// output is a buffer that one goroutine writes and another reads.
type output = klogtest.Buffer
