package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

const lifecycleFile = "http/90-lifecycle"

// lifecycleCase is a recorded life of a server process.
type lifecycleCase struct {
	Name       string
	Args, DBs  []string
	Actions    []string
	ExitCode   int      `json:"exit_code"`
	Output     []string // log lines, or what went to standard error
	RotatedLog []string `json:"rotated_log"`

	SnapshotFiles []string `json:"snapshot_files"`
	GetReply      string   `json:"get_reply"`
}

// life is a case being replayed.
type life struct {
	*lifecycleCase
	dir    string
	opts   ktproc.Options
	server *ktproc.Server
}

// TestLifecycle replays starts, signals and log lines. A family of cases has one function, found by
// its name.
func TestLifecycle(t *testing.T) {
	bin, listed := ktproc.BuildPlain(t, "ktserver"), loadDifferences(t)
	for _, c := range readLines[lifecycleCase](t, "testdata/"+lifecycleFile+".jsonl") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			id := caseID{lifecycleFile, c.Name}
			if listed[id].later {
				t.Skip(listed[id].reason)
			}
			l := &life{lifecycleCase: &c, dir: t.TempDir()}
			l.opts = ktproc.Options{Bin: bin, Dir: l.dir, Args: c.Args, DBs: c.DBs}
			if bad := listed.verdict(id, l.replay(t)); bad != "" {
				t.Error(bad)
			}
		})
	}
}

// replay says what differed. Anything that keeps the case from going on fails the test at once.
func (l *life) replay(t *testing.T) (difference string) {
	family, _, _ := strings.Cut(l.Name, "-")
	switch {
	case l.Name == "signal-USR1-restart":
		return l.restart(t)
	case family == "daemon":
		return l.daemon(t)
	case family == "signal":
		return l.signal(t)
	case family == "loglevel" || family == "log":
		return l.logLines(t)
	case family == "start":
		return l.start(t)
	case l.Name == "full-options-order":
		return l.fullOptions(t)
	case l.Name == "snapshot-loaded-at-start":
		return l.loadSnapshots(t)
	}
	return "no test knows this case"
}

// exit waits for the end of the process and compares exit code and output.
func (l *life) exit(t *testing.T) (difference string) {
	if code := l.server.ExitCode(t); code != l.ExitCode {
		return fmt.Sprintf("exit code: want %d, got %d\n%s", l.ExitCode, code, l.server.Output())
	}
	return l.compareLog(l.Output, l.server.Output())
}

var (
	logTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z: `)
	logPID  = regexp.MustCompile(`pid=\d+`)
	logFD   = regexp.MustCompile(`fd=\d+`)
	logPeer = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

// Lines that only our server writes: what an acknowledgement promises, that the server is protected
// from other machines, and what to do about a port that cannot be had.
const (
	listenLine     = "@TS@: [ERROR]: this server cannot listen on "
	durabilityLine = "@TS@: [INFO]: durability: "
	protectedLine  = "@TS@: [INFO]: protected: "
)

// mask replaces what changes from run to run by the recordings' tokens.
func (l *life) mask(output string) []string {
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		line = logTime.ReplaceAllLiteralString(line, "@TS@: ")
		line = logPID.ReplaceAllLiteralString(line, "pid=@PID@")
		line = logFD.ReplaceAllLiteralString(line, "fd=@FD@")
		line = strings.ReplaceAll(line, fmt.Sprintf(":%d", l.server.Port), ":@PORT@")
		line = logPeer.ReplaceAllLiteralString(line, "@PEER@")
		if !strings.HasPrefix(line, durabilityLine) && !strings.HasPrefix(line, protectedLine) && !strings.HasPrefix(line, listenLine) {
			lines = append(lines, line)
		}
	}
	return lines
}

// compareLog compares log lines. While the server stops, the lines about its connections come from
// many goroutines, so from "server stopped" on they are compared as a multiset, and the others in
// their order.
func (l *life) compareLog(want []string, output string) (difference string) {
	return compareLines(want, l.mask(output))
}

func compareLines(want, got []string) (difference string) {
	if isUsage(want) {
		if !isUsage(got) {
			return fmt.Sprintf("want a usage text, got %q", got)
		}
		return ""
	}
	if !slices.Equal(arrange(want), arrange(got)) {
		return fmt.Sprintf("log lines\n want %s\n got  %s", strings.Join(want, "\n      "), strings.Join(got, "\n      "))
	}
	return ""
}

// isUsage recognizes a usage text. Ours has words of its own.
func isUsage(lines []string) bool {
	return len(lines) > 1 && strings.HasPrefix(lines[0], "ktserver: ") &&
		slices.ContainsFunc(lines, func(s string) bool { return strings.HasPrefix(s, "usage:") })
}

// arrange puts the lines about connections during a stop behind all others, sorted.
func arrange(lines []string) []string {
	var kept, moved []string
	stopping := false
	for _, line := range lines {
		stopping = stopping || strings.HasSuffix(line, "[SYSTEM]: server stopped")
		if stopping && strings.Contains(line, ": [INFO]: ") {
			moved = append(moved, line)
		} else {
			kept = append(kept, line)
		}
	}
	slices.Sort(moved)
	return append(kept, moved...)
}

// awaitLines waits until the log, in a file or the process's output, has n lines that end in
// suffix.
func awaitLines(t *testing.T, read func() string, suffix string, n int) {
	t.Helper()
	pattern := regexp.MustCompile(`(?m)` + suffix + `$`)
	require.Eventually(t, func() bool { return len(pattern.FindAllString(read(), -1)) >= n }, 10*time.Second,
		5*time.Millisecond, "waiting for %d lines %q in:\n%s", n, suffix, read())
}

const (
	disconnected = `disconnecting: expr=.*`
	connected    = `: connected: expr=.*`
	listening    = `listening server socket started: .*`
)

func readFile(t *testing.T, path string) func() string {
	return func() string {
		data, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		return string(data)
	}
}

func (l *life) path(name string) string { return filepath.Join(l.dir, name) }

// begin starts the server. It waits until the server has closed the connection that tested whether
// the server listens.
func (l *life) begin(t *testing.T, log func() string) {
	t.Helper()
	l.server = ktproc.Start(t, l.opts)
	if log == nil {
		log = l.server.Output
	}
	awaitLines(t, log, disconnected, 1)
}

func (l *life) dial(t *testing.T) *replayConn {
	t.Helper()
	c, err := dial(l.server.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a request and returns the response.
func (c *replayConn) ask(t *testing.T, request string) string {
	t.Helper()
	c.send(request, 0, 0)
	c.awaitResponses(1, false, time.Now().Add(answerLimit))
	response := string(c.buf)
	require.Contains(t, response, "\r\n\r\n")
	c.buf = nil
	return response
}

// awaitEOF waits until the server has closed the connection.
func (c *replayConn) awaitEOF(t *testing.T, limit time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(limit); c.fill(deadline); {
	}
	require.True(t, c.eof, "the connection is still open")
}

// post is a request with a body of tab-separated values.
func post(procedure, body string) string {
	return fmt.Sprintf("POST /rpc/%s HTTP/1.1\r\nContent-Type: text/tab-separated-values\r\nContent-Length: %d\r\n\r\n%s",
		procedure, len(body), body)
}
