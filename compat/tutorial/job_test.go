package tutorial

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/klog/klogtest"
)

// job is a command in the background.
type job struct {
	line  string
	port  string // of a server
	out   output
	stop  func(syscall.Signal)
	ended func() bool
}

// start starts a command in the background. A server is awaited until it listens.
func (s *shell) start(t *testing.T, line string) *job {
	t.Helper()
	s.awaitPort(t, line)
	j := &job{line: line, port: s.serverPort(line)}
	cmd, exited := s.command("exec "+line, &j.out), make(chan struct{})
	require.NoError(t, cmd.Start())
	j.stop = func(sig syscall.Signal) { _ = cmd.Process.Signal(sig) } // it may have ended already
	j.ended = func() bool {
		select {
		case <-exited:
			return true
		default:
			return false
		}
	}
	go func() {
		_ = cmd.Wait() // killed servers are part of tutorials
		close(exited)
	}()
	s.jobs = append(s.jobs, j)
	if j.port != "" {
		require.Eventually(t, func() bool { return listens(j.port) }, patience, pollEvery, "%s\n%s", line, &j.out)
	}
	return j
}

// awaitPort waits for the end of an earlier server on the port of the one that a command starts.
func (s *shell) awaitPort(t *testing.T, line string) {
	t.Helper()
	port := s.serverPort(line)
	for _, other := range s.jobs {
		if port != "" && other.port == port {
			other.awaitEnd(t, line)
		}
	}
}

var portOption = regexp.MustCompile(`(?:^|\s)-port (\d+)`)

// serverPort is the port of the server that a command line starts, empty where it starts none.
func (s *shell) serverPort(line string) string {
	if !strings.HasPrefix(line, "ktserver") || strings.HasPrefix(line, "ktserver access ") || strings.HasPrefix(line, "ktserver config ") {
		return ""
	}
	if m := portOption.FindStringSubmatch(line); m != nil {
		return s.ports[m[1]]
	}
	return s.ports["1978"]
}

func listens(port string) bool {
	c, err := net.Dial("tcp4", "127.0.0.1:"+port)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

func (j *job) awaitEnd(t *testing.T, why string) {
	t.Helper()
	require.Eventually(t, j.ended, patience, pollEvery, "%s: %q has not ended:\n%s", why, j.line, &j.out)
}

// waiting is the job that waits for a signal, nil where none does.
func (s *shell) waiting() *job {
	for _, j := range s.jobs {
		if j.port == "" && !j.ended() {
			return j
		}
	}
	return nil
}

var daemonOptions = regexp.MustCompile(`(?s)ktserver.*-dmn.*-pid (\S+)`)

// noteDaemon remembers the daemon that a command has started. The daemon is no child of this
// process, so it cannot be waited for: /proc says when it has ended.
func (s *shell) noteDaemon(t *testing.T, line string) {
	t.Helper()
	m := daemonOptions.FindStringSubmatch(s.names.Replace(line))
	if m == nil {
		return
	}
	j := &job{line: line, port: s.serverPort(line)}
	path := strings.ReplaceAll(m[1], "$PWD", s.dir)
	require.Eventually(t, func() bool { return listens(j.port) }, patience, pollEvery, line)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	require.NoError(t, err)
	j.ended = func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ") // Z: ended, not waited for
	}
	j.stop = func(sig syscall.Signal) {
		if !j.ended() {
			_ = syscall.Kill(pid, sig)
		}
	}
	s.jobs = append(s.jobs, j)
}

// endJobs ends what a tutorial has left running.
func (s *shell) endJobs(t *testing.T) {
	for _, j := range slices.Backward(s.jobs) { // a daemon's port may be another job's by now
		j.stop(syscall.SIGTERM)
		j.awaitEnd(t, "the end")
		if strings.Contains(j.out.String(), "DATA RACE") {
			t.Errorf("data race in %q:\n%s", j.line, &j.out)
		}
	}
}

// output collects what a process writes.
type output = klogtest.Buffer
