// Package server puts the parts together to a running server: databases, protocols, ports, process
// signals, timers and the log. Run is the whole life of the process.
//
// Each part is a type of its own, in a file with its name. It is given what it needs and knows
// nothing of the insides of other parts. Only root knows all parts: it opens them in order, and its
// stack closes them in reverse order.
//
// A connection has a goroutine that looks at the first byte of each request and gives it to package
// binproto or httpapi, see conn.
package server

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Program is the name under which the server reports errors of its configuration.
const Program = "ktserver"

// Run runs a server until ctx ends or the process is told to stop by a signal, and returns the exit
// code. Errors of the configuration go to stderr, and everything else to the log, which is stdout
// unless Config.LogPath names a file.
//
// A daemon continues in another process: Run returns as soon as that process is started.
func Run(ctx context.Context, cfg Config, stdout, stderr io.Writer) int {
	if err := cfg.check(); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", Program, err)
		return 1
	}
	sink, err := openSink(cfg.LogPath, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", Program, err)
		return 1
	}
	defer sink.Close()
	if cfg.Daemon && !enterDaemon() {
		if err := launchDaemon(); err != nil {
			fmt.Fprintf(stderr, "%s: switching to a daemon: %v\n", Program, err)
			return 1
		}
		for _, note := range cfg.daemonNotes() {
			fmt.Fprintf(stderr, "%s: %s\n", Program, note)
		}
		return 0
	}
	signals := watchSignals(cfg.Daemon, cfg.Reload.Again != nil)
	defer signals.close()
	ballast := make([]byte, ballastSize)
	defer runtime.KeepAlive(ballast)
	live := newLive(&cfg)
	log := newLogger(cfg.LogFormat, sink, &live.level)
	r := &root{
		cfg: &cfg, live: live, log: log, sink: sink, signals: signals, manager: manager{log},
		process: os.Getpid(), started: time.Now(), stack: stack{closed: cfg.closed},
	}
	if !run(ctx, r) {
		return 1
	}
	return r.code
}

// run opens the parts, serves, and closes the parts. It reports whether everything went well.
func run(ctx context.Context, r *root) bool {
	r.log.system("================ [START]: pid=%d", r.process)
	for _, doubt := range r.cfg.doubts() {
		r.log.system("warning: %s", doubt)
	}
	ok := r.open() && serve(ctx, r)
	return r.stack.unwind() && ok
}

// serve listens, and listens again after each restart, until the server shall stop. It reports
// whether nothing failed.
func serve(ctx context.Context, r *root) (ok bool) {
	defer r.manager.tell(daemon.SdNotifyStopping)
	defer r.memcached.stop()
	for {
		if err := r.data.start(); err != nil {
			failure(r.log, err)
			return false
		}
		r.following.start()
		r.cluster.Load().start()
		if err := r.memcached.start(); err != nil {
			failure(r.log, err)
			r.data.stop()
			return false
		}
		r.manager.tell(daemon.SdNotifyReady)
		r.health.phase.set("")
		r.onRole.start()
		if r.cfg.Listening != nil {
			r.cfg.Listening(r.data.Addr())
		}
		again, ok := attend(ctx, r)
		if !again {
			r.cluster.Load().resign()
		}
		r.data.stop()
		if !again {
			return ok
		}
		r.manager.tell(daemon.SdNotifyReloading)
		r.memcached.stop()
		r.sink.reopen(r.log)
		r.scripts.reload()
		r.access.Reload()
	}
}

// attend waits until the ports must stop. It reports whether to listen again, and if not, whether
// nothing failed.
func attend(ctx context.Context, r *root) (again, ok bool) {
	for {
		select {
		case <-ctx.Done():
			return false, true
		case <-r.databases.catalog.Failed():
			r.log.error("no update is acknowledged any more, stopping: %v", r.databases.catalog.Err())
			return false, false
		case <-r.cluster.Load().failed():
			r.log.error("this server is no member of its cluster until it is started again, stopping: %v", r.cluster.Load().Err())
			return false, false
		case r.code = <-r.scripts.exit:
			return false, true
		case d := <-r.signals.received:
			if d != demandReload {
				return d == demandRestart, true
			}
			reload(r)
		}
	}
}

// reload reads the configuration again and changes what can be changed. After an error everything
// stays as it is.
func reload(r *root) {
	r.manager.tell(daemon.SdNotifyReloading)
	defer r.manager.tell(daemon.SdNotifyReady)
	r.sink.reopen(r.log)
	next, err := r.cfg.Reload.Again()
	if err == nil {
		err = next.check()
	}
	if err != nil {
		r.log.error("reading the configuration again, everything stays as it is: %v", err)
		return
	}
	changed, fixed := r.live.reload(next)
	r.following.reload(next.MasterInterval, changed)
	r.log.system("configuration read again: changed: %s", list(changed))
	if len(fixed) > 0 {
		r.log.error("these options change with the next start only: %s", list(fixed))
	}
}
