package server

import (
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"strings"
	"time"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/db/expr"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/memcache"
)

// memcachePlugin is the file name of the plug-in server that is built in. Plug-ins are found by the
// last component of their path, wherever the path points: a Go program cannot load the original's
// libraries.
const memcachePlugin = "ktplugservmemc.so"

// PluginConfig is what the original has in loadable libraries.
type PluginConfig struct {
	Server   string // path that names the plug-in server (-plsv); empty: none
	Expr     string // its configuration (-plex)
	Database string // path that names the engine of all databases (-pldb); empty: their own kinds

	MemcachePort         int           // of memcached without a plug-in (-memcache-port); 0: none
	MemcacheOptions      string        // letters as in Expr (-memcache-opts); empty: f
	MemcacheQueueTimeout time.Duration // as qtout in Expr (-memcache-qtout); 0: default
}

// defaultMemcacheOptions suit nearly all clients: they keep the types of values in the flags.
const defaultMemcacheOptions = "f"

var errTwoMemcaches = errors.New("-memcache-port cannot be used together with -plsv")

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
		x, err := expr.Parse(databases[0])
		if err != nil {
			return nil // opening the database tells
		}
		kind = x.Kind
	}
	err := cfg.Check(kind)
	if c.Server != "" && errors.Is(err, memcache.ErrReadOnlyQueue) {
		return nil // the original starts without its plug-in
	}
	return err
}

// paths are the paths that must be absolute in a daemon.
func (c *PluginConfig) paths() []string {
	if c.shared() {
		return []string{c.Server}
	}
	return []string{c.Server, c.Database}
}

// shared reports whether -pldb names an engine that several servers share.
func (c *PluginConfig) shared() bool { return IsEngineURL(c.Database) }

// memcache returns the configuration of the memcached service; ok is false where there shall be no
// such service.
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

// isMemcachePlugin reports whether a path names the plug-in that is built in.
func isMemcachePlugin(path string) bool {
	return path[strings.LastIndexByte(path, filepath.Separator)+1:] == memcachePlugin
}

// memcached is the memcached service: it listens whenever the data port does.
type memcached struct {
	memcachedOptions
	cfg     memcache.Config
	service *memcache.Server // nil when there is none, or its configuration is impossible
	fatal   bool             // without its port the whole server does not start
	open    bool
	failed  bool
}

// memcachedOptions are what the service needs.
type memcachedOptions struct {
	Plugins  PluginConfig
	Host     string // of the data port, as an IPv4 address, or empty
	DB       *db.DB // nil: there is no database to serve
	Started  time.Time
	Access   *access.Guard
	MaxConns int
	Limits   *netio.Limits
	Loops    *netio.Loops // nil: each connection has a goroutine
	Meter    *metrics.Meter
	Requests *metrics.Protocol
	Forward  *netio.Forward
	Secure   func(net.Listener) net.Listener
	Log      logger
}

// loadMemcached prepares the service. The error keeps the server from starting, and is the text of
// a log line. As a plug-in the service may fail: the original serves its databases without it.
func loadMemcached(o memcachedOptions) (*memcached, error) {
	m := &memcached{memcachedOptions: o, fatal: o.Plugins.Server == ""}
	if path := o.Plugins.Server; path != "" {
		o.Log.system("loading a plug-in server file: path=%s", path)
		if !isMemcachePlugin(path) {
			return nil, fmt.Errorf("could not load a plug-in server file: %s", path)
		}
		o.Log.system("the plug-in memcached server configured: expr=%s", o.Plugins.Expr)
	}
	cfg, wanted := o.Plugins.memcache()
	if !wanted || o.DB == nil {
		return m, nil
	}
	m.cfg = cfg
	service, err := memcache.New(memcache.Options{
		Config: cfg, DB: o.DB, Started: o.Started, Logger: o.Log.Logger, Access: accessOn(o.Access, cfg.Host),
		MaxConns: o.MaxConns, Limits: o.Limits, Loops: o.Loops, Meter: o.Meter, Requests: o.Requests, Forward: o.Forward,
	})
	if err != nil {
		return m, m.fail(err)
	}
	m.service = service
	return m, nil
}

// fail returns the error where the server must not go on, and else writes its line.
func (m *memcached) fail(err error) error {
	m.failed = true
	if m.fatal {
		return err
	}
	m.Log.error("%v", err)
	return nil
}

// start listens. The error keeps the server from starting.
func (m *memcached) start() error {
	if m.service == nil {
		return nil
	}
	l, err := m.listen()
	if err != nil {
		return m.fail(err)
	}
	m.service.Open(bare(m.Secure(l), m.Loops))
	m.open = true
	return nil
}

// listen opens the service's port. The error is the text of a log line.
func (m *memcached) listen() (*net.TCPListener, error) {
	var host string
	if m.cfg.Host != "" {
		addr, err := resolve(m.cfg.Host)
		if err != nil {
			return nil, fmt.Errorf("unknown host: %s", m.cfg.Host)
		}
		host = addr
	} else if m.fatal {
		host = m.Host
	}
	m.Log.system("starting the server: expr=%s:%d", host, m.cfg.Port)
	if m.cfg.Port > math.MaxUint16 {
		return nil, badAddress(host, m.cfg.Port)
	}
	l, err := bind(host, m.cfg.Port)
	if err != nil {
		return nil, err
	}
	logOpened(m.Log, l, host, m.cfg.Port, m.cfg.Timeout)
	return l, nil
}

// stop ends the connections and closes the port.
func (m *memcached) stop() {
	if !m.open {
		return
	}
	m.open = false
	m.Log.system("server stopped")
	m.Log.system("finishing the server")
	if err := m.service.Close(); err != nil {
		m.Log.error("closing the server socket: %v", err)
	}
	m.Log.system("closing the server socket")
}

// finish reports whether the service has always run.
func (m *memcached) finish() bool {
	if m.failed {
		m.Log.error("not running")
	}
	return !m.failed
}
