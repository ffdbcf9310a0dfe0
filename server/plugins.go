package server

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gotycoon/db"
	"gotycoon/db/expr"
	"gotycoon/memcache"
)

// memcachePlugin is the file name of the plug-in server that is built in. Plug-ins are found by the last component of their path,
// wherever that points: a Go program cannot load the original's libraries.
const memcachePlugin = "ktplugservmemc.so"

// PluginConfig is what the original has in loadable libraries.
type PluginConfig struct {
	Server   string // path that names the plug-in server (-plsv); empty: none
	Expr     string // its configuration (-plex)
	Database string // path that names the engine of all databases (-pldb); empty: each has its own kind

	MemcachePort         int           // serve memcached clients on this port, without a plug-in (-memcache-port); 0: no
	MemcacheOptions      string        // letters as in Expr (-memcache-opts); empty: f
	MemcacheQueueTimeout time.Duration // as qtout in Expr (-memcache-qtout); 0: default
}

// defaultMemcacheOptions suit nearly all clients: they keep the types of values in the flags.
const defaultMemcacheOptions = "f"

var (
	errTwoMemcaches = errors.New("-memcache-port cannot be used together with -plsv")
	errNoEngine     = errors.New("no such engine")
)

// check finds what is wrong with the configuration, given the expressions of the databases.
func (c *PluginConfig) check(databases []string) error {
	if c.MemcachePort != 0 && c.Server != "" {
		return errTwoMemcaches
	}
	cfg, wanted := c.memcache()
	if !wanted || len(databases) == 0 {
		return nil
	}
	kind := expr.Plugged
	if c.Database == "" {
		expr, err := expr.Parse(databases[0])
		if err != nil {
			return nil //nolint:nilerr // opening the database tells
		}
		kind = expr.Kind
	}
	err := cfg.Check(kind)
	if c.Server != "" && errors.Is(err, memcache.ErrReadOnlyQueue) {
		return nil // the original starts without its plug-in
	}
	return err
}

// paths are those that must be absolute in a daemon.
func (c *PluginConfig) paths() []string { return []string{c.Server, c.Database} }

// memcache returns the configuration of the memcached service; ok is false when there shall be none.
func (c *PluginConfig) memcache() (cfg memcache.Config, ok bool) {
	if c.Server != "" {
		return memcache.ParseConfig(c.Expr), true
	}
	cfg = memcache.DefaultConfig()
	cfg.Port = c.MemcachePort
	if cfg.SetOptions(c.MemcacheOptions); c.MemcacheOptions == "" {
		cfg.SetOptions(defaultMemcacheOptions)
	}
	if c.MemcacheQueueTimeout > 0 {
		cfg.QueueTimeout = c.MemcacheQueueTimeout
	}
	return cfg, c.MemcachePort != 0
}

// engine returns the engine of all databases, nil for none in particular.
func (p *process) engine() (*db.Engine, error) {
	path := p.cfg.Plugins.Database
	if path == "" {
		return nil, nil //nolint:nilnil // both are "none"
	}
	p.log.system("loading a plug-in database file: path=%s", path)
	e, ok := db.FindEngine(path)
	if !ok {
		p.log.error("could not load a plug-in database file: %s", path)
		return nil, errNoEngine
	}
	return &e, nil
}

// plugin is the memcached service: it listens whenever the server does.
type plugin struct {
	p       *process
	cfg     memcache.Config
	service *memcache.Server // nil when there is none, or its configuration is impossible
	fatal   bool             // without its port the whole server does not start
	open    bool
	failed  bool
}

// isMemcachePlugin tells by the last part of the path.
func isMemcachePlugin(path string) bool {
	return path[strings.LastIndexByte(path, filepath.Separator)+1:] == memcachePlugin
}

// loadPlugin prepares the service. It reports whether the server can go on.
func (p *process) loadPlugin() (*plugin, bool) {
	g := &plugin{p: p, fatal: p.cfg.Plugins.Server == ""}
	if path := p.cfg.Plugins.Server; path != "" {
		p.log.system("loading a plug-in server file: path=%s", path)
		if !isMemcachePlugin(path) {
			p.log.error("could not load a plug-in server file: %s", path)
			return nil, false
		}
		p.log.system("the plug-in memcached server configured: expr=%s", p.cfg.Plugins.Expr)
	}
	cfg, wanted := p.cfg.Plugins.memcache()
	if !wanted || p.catalog.Len() == 0 {
		return g, true
	}
	g.cfg = cfg
	service, err := memcache.New(memcache.Options{
		Config: cfg, DB: p.catalog.DB(0), Started: p.started, Logger: p.log.Logger, Access: p.accessOn(cfg.Host),
		MaxConns: p.cfg.Limits.conns(), Limits: &p.tuned.limits,
		Meter: p.admin.meter, Requests: p.admin.meters.memcache,
	})
	if err != nil {
		p.log.error("%v", err)
		g.failed = true
		return g, !g.fatal
	}
	g.service = service
	return g, true
}

// start listens. It reports whether the server can go on: with the original's option it does so without the service.
func (g *plugin) start() bool {
	if g.service == nil {
		return true
	}
	l, err := g.listen()
	if err != nil {
		g.p.log.error("%v", err)
		g.failed = true
		return !g.fatal
	}
	g.service.Open(g.p.secure(l))
	g.open = true
	return true
}

// listen opens the service's port. The error is the text of a log line.
func (g *plugin) listen() (net.Listener, error) {
	log, host := g.p.log, ""
	if g.cfg.Host != "" {
		addr, err := net.ResolveIPAddr("ip4", g.cfg.Host)
		if err != nil {
			return nil, fmt.Errorf("unknown host: %s", g.cfg.Host)
		}
		host = addr.String()
	} else if g.fatal {
		host = g.p.host
	}
	log.system("starting the server: expr=%s:%d", host, g.cfg.Port)
	addr, err := net.ResolveTCPAddr("tcp4", net.JoinHostPort(host, strconv.Itoa(g.cfg.Port)))
	if err != nil {
		return nil, fmt.Errorf("socket error: expr=%s:%d msg=invalid address expression", host, g.cfg.Port)
	}
	l, err := net.ListenTCP("tcp4", addr)
	if err != nil {
		return nil, fmt.Errorf("socket error: expr=%s:%d msg=bind failed", host, g.cfg.Port)
	}
	log.system("server socket opened: expr=%s:%d timeout=%.1f", host, g.cfg.Port, g.cfg.Timeout.Seconds())
	log.system("listening server socket started: fd=%d", descriptor(l))
	return l, nil
}

// stop ends the connections and closes the port.
func (g *plugin) stop() {
	if !g.open {
		return
	}
	g.open = false
	log := g.p.log
	log.system("server stopped")
	log.system("finishing the server")
	if err := g.service.Close(); err != nil {
		log.error("closing the server socket: %v", err)
	}
	log.system("closing the server socket")
}

// finish reports whether the service has always run.
func (g *plugin) finish() bool {
	if g.failed {
		g.p.log.error("not running")
	}
	return !g.failed
}
