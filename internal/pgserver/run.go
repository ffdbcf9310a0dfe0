package pgserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Start starts the server and returns when it takes connections. It is not a daemon: a Ctrl-C in
// the terminal ends it too, but for Options.Apart.
func (s *Server) Start() error {
	if s.cmd != nil {
		return errors.New("the server runs already")
	}
	said, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	before, err := said.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := s.command("postgres", "-D", s.data())
	cmd.Stdout, cmd.Stderr = said, said
	WithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.done = cmd, make(chan error, 1)
	go func() { s.done <- cmd.Wait() }()
	return s.await(before)
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// await waits until the server takes connections. The server writes so into the last line of
// postmaster.pid, where pg_ctl looks for it as well. The first line is its process ID: the file may
// be that of a server that crashed, or of one that runs here already and would end without it.
// What the server says is in the log from an offset on.
func (s *Server) await(said int64) error {
	for until := time.Now().Add(patience); time.Now().Before(until); {
		raw, _ := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
		lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
		if lines[0] == strconv.Itoa(s.PID()) && strings.TrimSpace(lines[len(lines)-1]) == "ready" {
			return nil
		}
		select {
		case err := <-s.done:
			s.cmd = nil
			return fmt.Errorf("PostgreSQL has ended: %w; %s says:\n%s", err, s.logFile(), s.lastWords(said))
		case <-time.After(5 * time.Millisecond):
		}
	}
	return fmt.Errorf("PostgreSQL is not ready after %v; see %s", patience, s.logFile())
}

// lastWords returns what the log has from an offset on: its last error, and the lines behind it.
func (s *Server) lastWords(from int64) string {
	raw, err := os.ReadFile(s.logFile())
	if err != nil || int64(len(raw)) < from {
		return ""
	}
	words := string(raw[from:])
	if i := strings.LastIndex(words, "FATAL:"); i >= 0 {
		words = words[i:]
	}
	return strings.TrimSpace(words)
}

// Release gives the server's port back, for who will not start the server again. It is given back
// with the end of the process anyway.
func (s *Server) Release() {
	if s.reserved != nil {
		s.reserved.Close()
	}
}

// Stop ends the server as it should end: transactions are undone, data is written to the disk.
func (s *Server) Stop() error { return s.end(syscall.SIGINT) }

// Crash ends all processes of the server at once, as a power cut does: nothing is written any more,
// and the next Start recovers from the log.
func (s *Server) Crash() error { return s.end(syscall.SIGQUIT) }

func (s *Server) end(how syscall.Signal) error {
	if s.cmd == nil {
		return nil
	}
	if err := s.cmd.Process.Signal(how); err != nil {
		return err
	}
	select {
	case <-s.done: // an exit code other than 0 is what a crash has
		s.cmd = nil
		return nil
	case <-time.After(patience):
		return fmt.Errorf("PostgreSQL has not ended after %v", patience)
	}
}

// Signal sends a signal to the process that all others of the server come from.
func (s *Server) Signal(how syscall.Signal) error { return s.cmd.Process.Signal(how) }

// PID returns the process that all others of the server come from.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Standby makes a copy of a running server in dir, and starts it as a standby. From then on the
// server acknowledges what both have.
func (s *Server) Standby(dir string, o Options) (*Server, error) {
	o.Bin = s.bin
	b, err := prepare(dir, o)
	if err != nil {
		return nil, err
	}
	from := s.URL("postgres") + "&application_name=standby"
	if err := b.program("pg_basebackup", "-D", b.data(), "-d", from, "-R", "-X", "stream", "-c", "fast", "--no-sync"); err != nil {
		return nil, err
	}
	if err := b.configure(append(o.Settings, "synchronous_standby_names = ''")); err != nil {
		return nil, err
	}
	if err := b.Start(); err != nil {
		return nil, err
	}
	return b, s.Configure("synchronous_standby_names = 'standby'")
}

// Promote makes a standby a primary, and returns when it takes updates.
func (s *Server) Promote() error {
	return s.program("pg_ctl", "promote", "-w", "-D", s.data())
}
