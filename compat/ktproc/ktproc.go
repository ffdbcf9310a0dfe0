// Package ktproc runs the real server binary for tests.
package ktproc

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gotycoon/internal/freeport"
)

const (
	startLimit = 30 * time.Second
	stopLimit  = 40 * time.Second
	pollEvery  = 10 * time.Millisecond
)

// ExitCodes requires a command to print the original's version and its own for the word version,
// and to end with 1 and the usage text for a word that it does not know.
func ExitCodes(t *testing.T, name, version string) {
	t.Helper()
	bin := Build(t, name)
	out, err := exec.Command(bin, version).Output()
	if want := "Kyoto Tycoon 0.9.56b (2.19) on Linux (Kyoto Cabinet 1.2.76a)\ngotycoon "; err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%s %s: %q, %v", name, version, out, err)
	}
	out, err = exec.Command(bin, "nonsense").Output()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 1 || !strings.Contains(string(exit.Stderr), "\nusage:\n") || len(out) > 0 {
		t.Errorf("%s nonsense: %q, %v", name, out, err)
	}
}

// Options of a server process.
type Options struct {
	Bin     string   // the server binary
	Dir     string   // its working directory
	Args    []string // options; -port is added
	DBs     []string // database expressions
	BareDBs bool     // leave out the -- before them
	Env     []string // variables beside those of the test
}

// Server is a running server process.
type Server struct {
	Port int

	cmd     *exec.Cmd
	log     string // file with its standard output and error
	exited  chan struct{}
	stopped bool // by Stop or Kill
}

// Start starts a server and waits until it accepts connections. The test fails if the server ends
// before, or does not listen within half a minute. At the end of the test the server is killed if
// it still runs.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	s := Launch(tb, o, freeport.Take(tb))
	if !s.AwaitListening() {
		tb.Fatalf("the server does not listen, exit code %d:\n%s", s.cmd.ProcessState.ExitCode(), s.Output())
	}
	return s
}

// Launch starts a server on a port and does not wait. At the end of the test the server is killed
// if it still runs.
func Launch(tb testing.TB, o Options, port int) *Server {
	tb.Helper()
	args := append([]string{"-port", strconv.Itoa(port)}, o.Args...)
	if !o.BareDBs {
		args = append(args, "--")
	}
	args = append(args, o.DBs...)
	s := &Server{Port: port, exited: make(chan struct{})}
	log, err := os.CreateTemp(tb.TempDir(), "server-*.log")
	if err != nil {
		tb.Fatal(err)
	}
	defer log.Close()
	s.log = log.Name()
	s.cmd = exec.Command(o.Bin, args...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = o.Dir, log, log
	s.cmd.Env = append(append(os.Environ(), "TZ=UTC"), o.Env...)
	if err := s.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // the exit code is in ProcessState
		close(s.exited)
	}()
	tb.Cleanup(func() { s.end(tb) })
	return s
}

// end kills the server if it still runs, and reports data races that the server has found in
// itself.
func (s *Server) end(tb testing.TB) {
	if !s.stopped {
		s.Kill()
	}
	if strings.Contains(s.Output(), "DATA RACE") {
		tb.Errorf("data race in the server:\n%s", s.Output())
	}
}

// AwaitListening waits until the server accepts connections. It returns false if the server ends
// before, or does not listen within half a minute.
func (s *Server) AwaitListening() bool {
	for deadline := time.Now().Add(startLimit); time.Now().Before(deadline); {
		c, err := net.Dial("tcp4", s.Addr())
		if err == nil {
			_ = c.Close()
			return true
		}
		select {
		case <-s.exited:
			s.stopped = true
			return false
		case <-time.After(pollEvery):
		}
	}
	s.Kill()
	return false
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// PID returns the process ID.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Signal sends a signal to the process.
func (s *Server) Signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		tb.Fatalf("signal %v: %v", sig, err)
	}
}

// Exited returns a channel that is closed when the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// ExitCode waits until the process has ended and returns its exit code, or the negative number of
// the signal that ended it.
func (s *Server) ExitCode(tb testing.TB) int {
	tb.Helper()
	select {
	case <-s.exited:
	case <-time.After(stopLimit):
		tb.Fatalf("the server does not end:\n%s", s.Output())
	}
	s.stopped = true
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return -int(status.Signal())
	}
	return s.cmd.ProcessState.ExitCode()
}

// Stop asks the server to end. The test fails if the server does not end with exit code 0.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.Signal(tb, syscall.SIGTERM)
	if code := s.ExitCode(tb); code != 0 {
		tb.Errorf("the server ended with exit code %d:\n%s", code, s.Output())
	}
}

// Kill ends the process at once (SIGKILL) and waits for its end.
func (s *Server) Kill() {
	s.stopped = true
	_ = s.cmd.Process.Kill() // it may have ended already
	<-s.exited
}

// Output returns the server's standard output and standard error so far.
func (s *Server) Output() string {
	out, err := os.ReadFile(s.log)
	if err != nil {
		return fmt.Sprintf("(no output: %v)", err)
	}
	return string(bytes.ToValidUTF8(out, []byte("?")))
}
