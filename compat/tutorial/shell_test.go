package tutorial

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

const (
	patience  = 10 * time.Second // for an output to become the one shown
	pollEvery = 20 * time.Millisecond
	longest   = 60 * time.Second // of one command
)

// shell runs commands in a directory in which everything is as a reader of a tutorial has it.
type shell struct {
	dir   string
	ports map[string]string // as written → in use
	names *strings.Replacer // written → in use
	back  *strings.Replacer // in use → written
	env   []string
	jobs  []*job
}

// newShell returns a shell with the commands of this module. places are directories as written that stand for ones
// below dir; they are created.
func newShell(t *testing.T, places ...string) *shell {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is needed to try what a tutorial shows")
	}
	s := &shell{dir: t.TempDir(), ports: map[string]string{"1978": freePort(t), "1979": freePort(t)}}
	var written, inUse []string
	for from, to := range s.ports {
		written, inUse = append(written, from, to), append(inUse, to, from)
	}
	for _, place := range places {
		require.NoError(t, os.MkdirAll(filepath.Join(s.dir, place), 0o755))
		written, inUse = append(written, place, s.dir+place), append(inUse, s.dir+place, place)
	}
	s.names, s.back = strings.NewReplacer(written...), strings.NewReplacer(inUse...)
	s.env = append(os.Environ(), "TZ=UTC", "PATH="+s.commands(t)+":"+os.Getenv("PATH"))
	t.Cleanup(func() { s.endJobs(t) })
	return s
}

func freePort(t *testing.T) string { return strconv.Itoa(ktproc.FreePort(t)) }

// commands is a directory of commands that use this test's port where none is written, curl that shows no progress
// as on a terminal, and go that finds this module wherever it runs.
func (s *shell) commands(t *testing.T) string {
	t.Helper()
	dir, port := t.TempDir(), s.ports["1978"]
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for name, script := range map[string]string{
		"ktserver": fmt.Sprintf("exec '%s' -port %s \"$@\"", ktproc.Build(t, "ktserver"), port),
		"ktremotemgr": fmt.Sprintf("sub=$1; [ $# -gt 0 ] && shift\nexec '%s' \"$sub\" -port %s \"$@\"",
			ktproc.Build(t, "ktremotemgr"), port),
		"curl": fmt.Sprintf("exec '%s' -sS \"$@\"", lookPath(t, "curl")),
		"go":   fmt.Sprintf("[ \"$1\" = run ] || exit 1\nhere=$PWD; cd '%s' && exec '%s' run \"$here/$2\"", root, lookPath(t, "go")),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	return dir
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err)
	return path
}

// command prepares a command line; its output goes to w.
func (s *shell) command(line string, w *output) *exec.Cmd {
	cmd := exec.Command("sh", "-c", s.names.Replace(line))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, w, w
	cmd.WaitDelay = longest
	return cmd
}

// run runs a command to its end and returns what it has written, with ports and places as in the document.
func (s *shell) run(t *testing.T, line string) string {
	t.Helper()
	s.awaitPort(t, line)
	var out output
	cmd := s.command(line, &out)
	require.NoError(t, cmd.Start())
	timer := time.AfterFunc(longest, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // the output shows what went wrong
	s.noteDaemon(t, line)
	return s.back.Replace(out.String())
}

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

var portOption = regexp.MustCompile(`-port (\d+)`)

// serverPort is the port of the server that a command line starts, empty where it starts none.
func (s *shell) serverPort(line string) string {
	if !strings.HasPrefix(line, "ktserver") {
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

// noteDaemon remembers the daemon that a command has started. It is no child of ours, so what tells its end is that its
// file with the process ID and its port are gone.
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
		_, err := os.Stat(path)
		return os.IsNotExist(err) && !listens(j.port)
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
	for _, j := range s.jobs {
		j.stop(syscall.SIGTERM)
		j.awaitEnd(t, "the end")
		if strings.Contains(j.out.String(), "DATA RACE") {
			t.Errorf("data race in %q:\n%s", j.line, &j.out)
		}
	}
}

// output collects what a process writes.
type output struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	return len(p), nil
}

// String returns what was written until now.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}
