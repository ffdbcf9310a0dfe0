package main

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"gotycoon/internal/pgserver"
)

// server is one of the servers.
type server struct {
	cmd  *exec.Cmd
	port int
	log  string
	done chan struct{} // closed when it has ended
	err  error         // of its end
}

// start starts the i-th server. ended is called when it has ended, for whatever reason.
func start(o options, url string, i int, ended func()) (*server, error) {
	s := &server{port: o.port + i, done: make(chan struct{})}
	s.log = filepath.Join(o.dir, fmt.Sprintf("server-%d.log", s.port))
	args := []string{"-host", "127.0.0.1", "-port", strconv.Itoa(s.port), "-log", s.log, "-pldb", url}
	if i == 0 {
		args = append(args, "-admin", fmt.Sprintf("127.0.0.1:%d", o.console))
	}
	s.cmd = exec.Command(o.program, args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for us, and we tell it
	pgserver.WithParent(s.cmd.SysProcAttr)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: 'make build' makes the program", err)
	}
	go func() {
		if err := s.cmd.Wait(); err != nil {
			s.err = fmt.Errorf("the server on port %d has ended: %w; %s says why", s.port, err, s.log)
		}
		close(s.done)
		ended()
	}()
	return s, nil
}

// await waits until the server answers, or ctx ends.
func (s *server) await(ctx context.Context) {
	for ctx.Err() == nil {
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/rpc/void", s.port))
		if err == nil {
			_ = r.Body.Close()
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// stop ends the server and waits for its end. The error says that it has not ended as it should.
func (s *server) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended before
	<-s.done
	return s.err
}
