// Package server puts the parts together to a running server: databases, protocols, the port, process signals, timers
// and the log. Run is the whole life of the process, to be read from top to bottom.
//
// A connection has a goroutine that looks at the first byte of each request and gives it to package binproto or
// httpapi. See listener for who starts and ends these goroutines.
package server

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/internal/browser"
	"gotycoon/internal/opcount"
	"gotycoon/internal/tlsport"
	"gotycoon/replication"
	"gotycoon/services/leader"
)

// Program is the name under which the server reports errors of its configuration.
const Program = "ktserver"

// process is what lives as long as the server, across restarts of the listener.
type process struct {
	cfg       Config
	tuned     *live // the part of cfg that can change
	log       logger
	host      string // cfg.Host as an IPv4 address, or empty
	access    *access.Guard
	pages     *browser.Policy // which requests of browsers are served
	started   time.Time
	catalog   *db.Catalog
	role      *leader.Role          // nil without a services' database
	follower  *replication.Follower // nil without Config.RTSPath
	replicas  replicas
	scripts   scripts
	snapshots *snapshots     // nil without Config.Snapshots
	tls       *tlsport.Guard // nil without Config.TLS
	counts    opcount.Counts
	room      *room
	admin     adminState
	conns     atomic.Int64  // open connections
	allConns  atomic.Uint64 // connections so far
	active    atomic.Bool   // there has been a request since the idle timer last looked
}

// Run runs a server until ctx ends or the process is told to stop by a signal, and returns the exit code. Errors of
// the configuration go to stderr, and everything else to the log, which is stdout unless Config.LogPath names a file.
//
// A daemon continues in another process: Run returns as soon as that is started.
func Run(ctx context.Context, cfg Config, stdout, stderr io.Writer) int {
	sink, err := prepare(&cfg, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", Program, err)
		return 1
	}
	defer sink.Close()
	if cfg.Daemon && !enterDaemon() {
		return launchDaemon(stderr)
	}
	signals := watchSignals(cfg.Daemon, cfg.Reload.Again != nil)
	defer signals.close()
	live := newLive(&cfg)
	p := &process{cfg: cfg, tuned: live, log: newFormatted(cfg.LogFormat, sink, &live.level), started: time.Now()}
	ballast := make([]byte, ballastSize)
	ok := p.run(ctx, signals, sink)
	runtime.KeepAlive(ballast)
	if !ok {
		return 1
	}
	return p.scripts.code
}

// ballastSize is memory that is never touched, and so is none of the machine's. Records are kept outside of the collector's
// heap, which is left so small that the collector would run a thousand times per second; it waits for the heap to double.
const ballastSize = 32 << 20

// prepare checks the configuration and opens the log.
func prepare(cfg *Config, stdout io.Writer) (*sink, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return openSink(cfg.LogPath, stdout)
}

// run reports whether everything went well.
func (p *process) run(ctx context.Context, signals *signals, sink *sink) bool {
	pid := os.Getpid()
	p.log.system("================ [START]: pid=%d", pid)
	if err := p.resolveHost(); err != nil {
		p.log.error("unknown host: %s", p.cfg.Host)
		return false
	}
	if err := p.openTLS(); err != nil {
		p.log.error("%v", err)
		return false
	}
	defer p.closeTLS()
	if !p.openAccess() {
		return false
	}
	defer p.access.Close()
	if err := p.openAdmin(); err != nil {
		p.log.error("%v", err)
		return false
	}
	defer p.closeAdmin()
	if err := p.openDatabases(); err != nil {
		p.logOpenError(err)
		return false
	}
	p.room = p.newRoom()
	p.room.look()
	if err := p.openRole(); err != nil {
		p.log.error("%v", err)
		p.room.close()
		p.closeDatabases()
		return false
	}
	p.openFollower()
	p.makeRoomForColdPages()
	p.log.info("%s", p.durability())
	p.tellProtection()
	p.tellDatabases()
	p.loadScript()
	plugin, ok := p.loadPlugin()
	if !ok {
		p.closeScript()
		p.closeFollower()
		_ = p.catalog.Close() // the reason is in the log already
		return false
	}
	services, err := p.openServices()
	if err != nil {
		p.log.error("%v", err)
		p.closeScript()
		p.closeFollower()
		p.closeDatabases()
		return false
	}
	p.export(services, plugin)
	p.writePID(pid)
	timers := p.startTimers()
	p.snapshots.start()
	ok = p.serve(ctx, signals, sink, plugin)
	p.tell(daemon.SdNotifyStopping)
	p.shutAdmin()
	p.snapshots.stop()
	ok = services.close(p.log) && ok
	ok = plugin.finish() && ok
	p.closeScript()
	p.closeFollower()
	timers.stop()
	p.room.close()
	p.removePID()
	ok = p.snapshots.last() && ok
	ok = p.closeDatabases() && ok
	p.log.system("================ [FINISH]: pid=%d", pid)
	return ok
}

// makeRoomForColdPages raises GOMAXPROCS when there are database files: those are mapped into memory, and a goroutine that meets
// a page which is not there keeps its processor in Go's eyes while it waits for the disk. A quarter more, and at least one, costs
// nothing that can be measured; four times as many cost a quarter of the requests per second, in looking for work. GOMAXPROCS in
// the environment has its way.
func (p *process) makeRoomForColdPages() {
	if _, set := os.LookupEnv("GOMAXPROCS"); set {
		return
	}
	for i := range p.catalog.Len() {
		if p.catalog.DB(i).OnDisk() {
			n := runtime.NumCPU()
			runtime.GOMAXPROCS(n + max(1, n/4))
			return
		}
	}
}

// serve listens, and listens again after each restart, until the server shall stop. It reports whether nothing failed.
func (p *process) serve(ctx context.Context, signals *signals, sink *sink, plugin *plugin) bool {
	port := p.cfg.Port
	defer plugin.stop()
	for {
		l, err := p.listen(port)
		if err != nil {
			p.log.error("%v", err)
			return false
		}
		port = l.port // a restart must not change it
		p.startFollower()
		if !plugin.start() {
			l.stop()
			return false
		}
		p.tell(daemon.SdNotifyReady)
		p.admin.phase.set("")
		if p.cfg.Listening != nil {
			p.cfg.Listening(l.socket.Addr())
		}
		if again, ok := p.attend(ctx, signals, sink); !again {
			l.stop()
			return ok
		}
		l.stop()
		p.tell(daemon.SdNotifyReloading)
		plugin.stop()
		sink.reopen(p.log)
		p.reloadScript()
		p.access.Reload()
	}
}

// attend waits until the listener must stop. It reports whether to listen again, and else whether nothing failed.
func (p *process) attend(ctx context.Context, signals *signals, sink *sink) (again, ok bool) {
	for {
		select {
		case <-ctx.Done():
			return false, true
		case <-p.catalog.Failed():
			p.log.error("no update is acknowledged any more, stopping: %v", p.catalog.Err())
			return false, false
		case p.scripts.code = <-p.scripts.exit:
			return false, true
		case d := <-signals.received:
			if d != demandReload {
				return d == demandRestart, true
			}
			p.reload(sink)
		}
	}
}
