package server

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// demand is what a signal asks for.
type demand int

const (
	demandStop demand = iota
	demandRestart
	demandReload
)

// signals turns the signals of the process into demands: TERM, INT and USR2 stop the server, USR1
// restarts it, and HUP does what watchSignals says.
type signals struct {
	received chan demand
	raw      chan os.Signal
	quit     chan struct{}
	wg       sync.WaitGroup
}

// watchSignals begins to listen for signals. HUP has the configuration read again where there is a
// configuration file. Without a file it restarts a daemon, and stops a server in the foreground.
func watchSignals(daemon, file bool) *signals {
	hangup := demandStop
	switch {
	case file:
		hangup = demandReload
	case daemon:
		hangup = demandRestart
	}
	s := &signals{received: make(chan demand), raw: make(chan os.Signal, 8), quit: make(chan struct{})}
	signal.Ignore(syscall.SIGPIPE)
	signal.Notify(s.raw, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGUSR1)
	s.wg.Go(func() {
		for {
			select {
			case sig := <-s.raw:
				s.pass(demanded(sig, hangup))
			case <-s.quit:
				return
			}
		}
	})
	return s
}

func demanded(sig os.Signal, hangup demand) demand {
	switch sig {
	case syscall.SIGHUP:
		return hangup
	case syscall.SIGUSR1:
		return demandRestart
	}
	return demandStop
}

// pass hands a demand over when the server is ready for it: a stop that comes during a restart is
// not lost.
func (s *signals) pass(d demand) {
	select {
	case s.received <- d:
	case <-s.quit:
	}
}

// close ends the goroutine and forgets the signals that came during the stop.
func (s *signals) close() {
	close(s.quit)
	s.wg.Wait()
	signal.Stop(s.raw)
}
