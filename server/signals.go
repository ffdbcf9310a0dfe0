package server

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signals turns the signals of the process into requests to stop or to restart (reference: section 1.4).
type signals struct {
	received chan bool // true: restart, false: stop
	raw      chan os.Signal
	quit     chan struct{}
	wg       sync.WaitGroup
}

// watchSignals begins to listen for signals. HUP restarts a daemon and stops a server in the foreground.
func watchSignals(daemon bool) *signals {
	s := &signals{received: make(chan bool), raw: make(chan os.Signal, 8), quit: make(chan struct{})}
	signal.Ignore(syscall.SIGPIPE)
	signal.Notify(s.raw, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGUSR1)
	s.wg.Go(func() {
		for {
			select {
			case sig := <-s.raw:
				s.pass(sig == syscall.SIGUSR1 || sig == syscall.SIGHUP && daemon)
			case <-s.quit:
				return
			}
		}
	})
	return s
}

// pass hands a request over when the server is ready for it: a stop that comes during a restart is not lost.
func (s *signals) pass(restart bool) {
	select {
	case s.received <- restart:
	case <-s.quit:
	}
}

// close ends the goroutine and forgets the signals that came during the stop.
func (s *signals) close() {
	close(s.quit)
	s.wg.Wait()
	signal.Stop(s.raw)
}
