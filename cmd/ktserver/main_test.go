package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
)

// asServer in the environment makes this test program behave as the command.
const asServer = "KTSERVER_UNDER_TEST"

// patience is how long a test waits for something that should happen at once.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
	}
	os.Exit(m.Run())
}

// command is the server as a process of its own, in a directory of its own.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asServer+"=1", "TZ=UTC", "GORACE=atexit_sleep_ms=0") // not a second at each exit
	return cmd
}

// started is a server in the foreground that logs to the file "log" in its directory.
type started struct {
	t    *testing.T
	dir  string
	port int
	cmd  *exec.Cmd
}

func start(t *testing.T, args ...string) *started {
	t.Helper()
	s := &started{t: t, dir: t.TempDir(), port: freeport.Take(t)}
	s.cmd = command(t, s.dir, append([]string{"-port", strconv.Itoa(s.port), "-log", "log"}, args...)...)
	var stderr bytes.Buffer
	s.cmd.Stderr = &stderr
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		require.Empty(t, stderr.String())
	})
	s.awaitReply()
	return s
}

// get returns the body of a reply, "" when the server does not answer.
func (s *started) get(path string) string {
	_, body := s.ask(path)
	return body
}

// ask returns status and body of a reply; 0: there was none.
func (s *started) ask(path string) (status int, body string) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	r, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", s.port, path))
	if err != nil {
		return 0, ""
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(text)
}

func (s *started) awaitReply() {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.get("/rpc/echo?up=1") != "" }, patience, 5*time.Millisecond)
}

func (s *started) signal(sig os.Signal) {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(sig))
}

// exitCode waits for the end of the process. Death by a signal is the negative number of the
// signal.
func (s *started) exitCode() int {
	s.t.Helper()
	return exitCode(s.t, s.cmd.Wait())
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, err)
	if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
		return -int(status.Signal())
	}
	return exit.ExitCode()
}

// log returns the lines of a log file without the time.
func (s *started) log(name string) []string {
	return logLines(s.t, filepath.Join(s.dir, name))
}

func logLines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z: \[[A-Z]+\]: `, line)
		lines = append(lines, regexp.MustCompile(`^\S+: |=\d+|:\d+`).ReplaceAllString(line, ""))
	}
	return lines
}

// refused runs a command line that cannot start and returns what it says.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	cmd := command(t, t.TempDir(), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.Equal(t, 1, exitCode(t, cmd.Run()))
	require.Empty(t, stdout.String())
	return stderr.String()
}

func (s *started) read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return ""
	}
	return string(text)
}

func (s *started) dial() net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", s.port))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	return c
}

// awaitRead waits until the server has read what a client has sent.
func (s *started) awaitRead(c net.Conn) {
	s.t.Helper()
	const table = "/proc/net/tcp" // of each socket: number, address, address of the other end, state, bytes to be sent and read
	of := fmt.Sprintf(":%04X 0100007F:%04X ", s.port, c.LocalAddr().(*net.TCPAddr).Port)
	require.Eventually(s.t, func() bool {
		text, err := os.ReadFile(table)
		if os.IsNotExist(err) {
			return true // no Linux
		}
		_, socket, _ := strings.Cut(string(text), of)
		return strings.Contains(s.read("log"), "connected") && strings.Contains(strings.SplitN(socket, " ", 3)[1], ":00000000")
	}, patience, time.Millisecond)
}
