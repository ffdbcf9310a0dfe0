package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gotycoon/db"
	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/relay"
	"gotycoon/db/rebuild"
	"gotycoon/httpapi"
)

const (
	defaultEngineWait = 30 * time.Second
	engineRetry       = 500 * time.Millisecond // between two attempts at the start
	engineLook        = 5 * time.Second        // for a look at it, by "config check"
	engineSilent      = 4 * time.Second        // without an answer to an update until balancers are told

	maxEngineConnections = 1000 // of lanes, and of readers
	leastEngineTimeout   = 100 * time.Millisecond
)

// checkEngine finds what a server cannot have together with an engine that several servers share.
func (c *Config) checkEngine() error {
	if isConnString(c.Plugins.Database) {
		return errors.New("-pldb: an engine has a URL, such as postgres://USER@HOST/DATABASE")
	}
	if !c.Plugins.shared() {
		if c.Engine != (EngineConfig{}) {
			return errors.New("the options -engine-… need -pldb postgres://…")
		}
		return nil
	}
	if err := pg.CheckURL(c.Plugins.Database); err != nil {
		return fmt.Errorf("-pldb: %w", err)
	}
	const own = "needs databases of the server's own, not those of an engine that servers share"
	for option, given := range map[string]bool{
		"-ulog": c.UpdateLog != "", "-bgs": c.Snapshots.Dir != "", "-mhost": c.MasterHost != "", "-rts": c.RTSPath != "", "-cluster": c.Cluster.on(),
		"-sync-replicas": c.Sync.Replicas > 0, "-compact-ratio": c.CompactRatio > 0,
	} {
		if given {
			return fmt.Errorf("%s %s", option, own)
		}
	}
	e := &c.Engine
	for option, n := range map[string]int64{
		"-engine-timeout": int64(e.Timeout), "-engine-lanes": int64(e.Lanes), "-engine-readers": int64(e.Readers), "-engine-group": int64(e.Group),
		"-engine-queue": int64(e.Queue), "-engine-queue-size": e.QueueSize, "-engine-log-age": int64(e.KeepAge), "-engine-log-size": e.KeepSize,
		"-engine-wait": int64(e.Wait),
	} {
		if n < 0 {
			return fmt.Errorf("%s: must be above 0, or absent for the default", option)
		}
	}
	if e.Timeout > 0 && e.Timeout < leastEngineTimeout {
		return fmt.Errorf("-engine-timeout: must be at least %v: no engine answers every operation sooner", leastEngineTimeout)
	}
	if info, err := os.Stat(e.Copies); e.Copies != "" && err == nil && !info.IsDir() {
		return fmt.Errorf("-engine-copies: %s is a file, and must be a directory", e.Copies)
	}
	for option, n := range map[string]int{"-engine-lanes": e.Lanes, "-engine-readers": e.Readers} {
		if n > maxEngineConnections {
			return fmt.Errorf("%s: must be from 1 to %d: each is a connection to PostgreSQL", option, maxEngineConnections)
		}
	}
	return nil
}

// sharedEngine is the engine of a server, from the opening of the databases to their closing.
type sharedEngine struct {
	*pg.Engine
	name  string // its URL without a password
	log   logger
	told  atomic.Int64 // when the log was told of a past, in Unix nanoseconds
	relay *relay.Relay // of signals; nil with -ord: a standby carries none
}

// Close ends the use of the engine.
func (s *sharedEngine) Close() error {
	if s.relay != nil {
		s.relay.Close()
	}
	return s.Engine.Close()
}

// openEngine connects to the engine, for which it waits at a start, and gives the configuration the
// engine's databases and server ID.
func (c *Config) openEngine(log logger) (*sharedEngine, error) {
	s := &sharedEngine{name: RedactedURL(c.Plugins.Database), log: log}
	log.system("connecting to the engine: %s", s.name)
	wait := c.Engine.Wait
	if wait == 0 {
		wait = defaultEngineWait
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	var last error
	for {
		var err error
		s.Engine, err = pg.Open(ctx, c.Plugins.Database, pg.Options{
			Addr: fmt.Sprintf("%s:%d", c.Host, c.Port), Lanes: c.Engine.Lanes, Readers: c.Engine.Readers,
			KeepFor: c.Engine.KeepAge, KeepBytes: c.Engine.KeepSize, ReadOnly: c.ReadOnly,
		})
		if err == nil {
			break
		}
		if ctx.Err() != nil && last != nil {
			return nil, fmt.Errorf("could not open the engine %s within %v (-engine-wait): %w", s.name, wait, pg.Advise(last))
		}
		if !engine.IsAway(err) || ctx.Err() != nil {
			return nil, fmt.Errorf("could not open the engine %s: %w", s.name, pg.Advise(err))
		}
		last = err // of the attempt that the end of the time cuts short there is nothing to tell
		log.info("the engine is not ready, waiting for it: %v", err)
		pause := time.NewTimer(engineRetry)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
	if err := c.adopt(s.Setup()); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("the engine %s: %w", s.name, err)
	}
	if !c.ReadOnly {
		s.relay = relay.New(s.Signals())
	}
	if status, err := s.Status(ctx); err == nil {
		say := log.system
		if status.Weak {
			say = log.error
		}
		say("connected to the engine: PostgreSQL %s, databases: %s, durability: %s, connection: %s",
			status.Version, strings.Join(c.Databases, " "), status.Durability, status.Link)
		if status.Public {
			log.system("warning: the engine %s: %s", s.name, pg.PublicWarning)
		}
	}
	return s, nil
}

// adopt takes over what was decided for all servers when the engine was set up.
func (c *Config) adopt(setup pg.Setup) error {
	switch {
	case len(c.Databases) > 0 && !slices.Equal(c.Databases, setup.Databases):
		return fmt.Errorf("it has the databases %q, and the command line names %q: give the same names in the same order, or none",
			setup.Databases, c.Databases)
	case c.ServerID > 0 && c.ServerID != int(setup.SID):
		return fmt.Errorf("all its servers have the server ID %d, and not %d: leave -sid out", setup.SID, c.ServerID)
	}
	c.Databases, c.ServerID = setup.Databases, int(setup.SID)
	return nil
}

// copies returns the directory for the files of commands, which no other server of the machine has.
func (c *Config) copies() string {
	place := c.Engine.Copies
	if place == "" {
		place = os.Getenv("TMPDIR")
	}
	if place == "" {
		place = "/var/tmp" // which is on a disk, and may be large
	}
	return filepath.Join(place, fmt.Sprintf("ktserver-%d", c.Port))
}

// use has a catalog keep its databases in the engine.
func (s *sharedEngine) use(o *db.Options, cfg *Config) {
	c := &cfg.Engine
	o.Shared, o.Copies = s.Engine, db.Copies{Dir: cfg.copies(), Write: rebuild.Write}
	o.Gather = gather.Options{
		Lanes: c.Lanes, Readers: c.Readers, Group: c.Group, Queue: c.Queue, QueueBytes: int(c.QueueSize), Timeout: c.Timeout,
		Past: s.past,
	}
}

// past tells of an engine that was taken back to the past while this server used it. Each lane
// finds out by itself, and one line is enough.
func (s *sharedEngine) past() {
	now := time.Now().UnixNano()
	if last := s.told.Load(); now-last < int64(time.Minute) || !s.told.CompareAndSwap(last, now) {
		return
	}
	s.log.error("the engine %s gave another server what it had given this one: it was restored from a backup, or a standby took over that lacked the last updates. "+
		"What was acknowledged meanwhile may be gone; the server goes on with what is there; run 'ktutilmgr engine renew'", s.name)
}

// signals returns the signals of clients of this server, which reach those of the others. Without
// an engine there are no others.
func (s *sharedEngine) signals() *httpapi.Signals {
	if s == nil || s.relay == nil {
		return httpapi.NewSignals(nil)
	}
	g := httpapi.NewSignals(s.relay)
	s.relay.Serve(g)
	return g
}

// engineAlarms tells of an engine that does not answer, or only does not carry signals.
func engineAlarms(c *db.Catalog, s *sharedEngine) (all []alarm) {
	if s == nil {
		return nil
	}
	all = s.silent(c.Groups().Stats())
	if s.relay == nil {
		return all
	}
	if err := s.relay.Stats().Deaf; err != nil {
		all = append(all, deafAlarm(err))
	}
	return all
}

// silent tells of an engine that does not answer, and why if PostgreSQL or the way to it has said
// so. Probes say neither this nor which engine it is: both name users and hosts.
func (s *sharedEngine) silent(g gather.Stats) []alarm {
	what, look := "", "look whether it runs and can be reached from here"
	switch {
	case g.Away:
		what = "does not answer, requests are refused"
	case g.Silent >= engineSilent:
		what = "has not answered any update for some seconds"
		look += ", and whether its synchronous standby is missing"
	default:
		return nil
	}
	const after = "The server goes on by itself as soon as the engine answers"
	a := alarm{name: alarmEngine, plain: fmt.Sprintf("the engine %s: %s. %s", what, look, after)}
	a.text = fmt.Sprintf("the engine %s %s: %s. %s", s.name, what, look, after)
	if g.Failure != nil {
		a.text = fmt.Sprintf("the engine %s %s: %v. %s", s.name, what, pg.Advise(g.Failure), after)
		a.plain = fmt.Sprintf("the engine %s: the log, the report and the console say why. %s", what, after)
	}
	return []alarm{a}
}

// deafAlarm tells why signals of other servers do not come. Probes do not say it: errors of
// connections name users and hosts.
func deafAlarm(why error) alarm {
	const what = "clients that wait here for a signal (WAIT) are not woken by signals that are sent at other servers of the engine"
	return alarm{
		name: alarmSignals, text: fmt.Sprintf("%s: %v. The server goes on trying", what, why),
		plain: what + ". The log, the report and the console say why. The server goes on trying",
	}
}
