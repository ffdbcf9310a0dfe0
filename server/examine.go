package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/engine/pg"
	"gotycoon/db/expr"
	"gotycoon/db/plugged"
)

// Examine finds what would keep a server with this configuration from running, or from keeping its
// data, without starting or creating anything. It returns everything that it finds. Warnings are
// about what a server would go on with, though hardly as it is meant. The notes are neither: a port
// in use may be the port of the server that is running now.
func Examine(cfg Config) (wrong []error, warnings, notes []string) {
	e := &examiner{cfg: &cfg}
	static := cfg
	if static.checkEngine() == nil {
		static.Snapshots.Dir = "" // its check makes the directory
	}
	if err := static.check(); err != nil {
		e.wrong = append(e.wrong, err)
	}
	e.directories()
	e.names()
	e.databases()
	e.ports()
	e.values()
	e.notes = append(e.notes, e.cfg.Services.notes()...)
	return e.wrong, e.warnings, e.notes
}

// directories checks whether files can be written where the configuration has them.
func (e *examiner) directories() {
	c := e.cfg
	for option, path := range map[string]string{"-log": c.LogPath, "-rts": c.RTSPath, "-pid": c.PIDPath, "-quota-export": c.Services.Export} {
		if path == "" || path == "-" {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			e.fail("%s: %s is a directory: name a file in it", option, path)
			continue
		}
		e.writable(option, path)
	}
	dirs := map[string]string{"-ulog": c.UpdateLog, "-bgs": c.Snapshots.Dir}
	if c.Cluster.on() {
		dirs["-cluster-dir"] = c.clusterDir()
	}
	for _, option := range slices.Sorted(maps.Keys(dirs)) {
		path := dirs[option]
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err == nil && !info.IsDir():
			e.fail("%s: %s is no directory", option, path)
			continue
		case errors.Is(err, os.ErrNotExist) && exists(filepath.Dir(path)):
			e.notes = append(e.notes, fmt.Sprintf("%s: the directory %s is not there: the server makes it at its start", option, path))
		}
		e.writable(option, path)
	}
}

// writable checks whether a file or directory can be written, or created where it is missing.
func (e *examiner) writable(option, path string) {
	at := path
	if _, err := os.Stat(at); errors.Is(err, os.ErrNotExist) {
		at = filepath.Dir(at)
	}
	switch err := unix.Access(at, unix.W_OK); {
	case errors.Is(err, os.ErrNotExist):
		e.fail("%s: %s cannot be written: there is no directory %s, make it first", option, path, at)
	case err != nil:
		e.fail("%s: %s cannot be written: %w", option, path, err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// maxMasterPort is the largest port that there is. MaxPort is what clients of the original can
// parse.
const maxMasterPort = 65535

// names checks the values that only the start of a server reads: the access file, the plug-ins.
func (e *examiner) names() {
	c := e.cfg
	if c.Timeout <= 0 {
		e.fail("-tout: it is above 0: how many seconds a client may keep the server waiting")
	}
	if c.MasterHost != "" && c.MasterPort > maxMasterPort {
		e.fail("-mport %d: a port is at most %d", c.MasterPort, maxMasterPort)
	}
	if path := c.Access.Path; path != "" {
		if _, err := access.Check(path); err != nil {
			e.fail("-access: %w", err)
		}
	}
	if path := c.Plugins.Server; path != "" && !isMemcachePlugin(path) {
		e.fail("-plsv: %s is no plug-in server of this program, only %s is", path, memcachePlugin)
	}
	if path := c.Plugins.Database; path != "" && !c.Plugins.shared() {
		if _, ok := plugged.Find(path); !ok {
			e.fail("-pldb: %s is no engine of this program", RedactedURL(path))
		}
	}
}

// databases checks whether the expressions mean something, and their files and logs can be opened.
func (e *examiner) databases() {
	if e.cfg.Plugins.shared() {
		e.engine()
		return
	}
	all := e.cfg.Databases
	if d := e.cfg.servicesDatabase(); d != "" {
		all = append(all[:len(all):len(all)], d)
	}
	files := map[string]bool{}
	for _, text := range all {
		x, err := expr.Parse(text)
		switch {
		case err != nil:
			e.fail("database %s: %s", text, reason(err))
		case x.Kind.OnDisk() && files[filepath.Clean(x.Path)]:
			e.fail("database %s: the file is given twice", text)
		case x.Kind.OnDisk() && !e.cfg.ReadOnly:
			e.writable("database "+text, x.Path)
		}
		if err == nil && x.Kind.OnDisk() {
			files[filepath.Clean(x.Path)] = true
		}
	}
	e.start()
}

// engine connects to the engine that several servers share.
func (e *examiner) engine() {
	c := e.cfg
	ctx, cancel := context.WithTimeout(context.Background(), engineLook)
	defer cancel()
	s, err := pg.ReadStatus(ctx, c.Plugins.Database)
	name := RedactedURL(c.Plugins.Database)
	if err != nil {
		e.fail("-pldb: the engine %s: %w", name, pg.Advise(err))
		return
	}
	if err := c.adopt(s.Setup); err != nil {
		e.fail("-pldb: the engine %s: %w", name, err)
	}
	if s.Standby && !c.ReadOnly {
		e.fail("-pldb: %s is a standby, which takes no updates: name the primary, or both, or use -ord", name)
	}
	if s.ReadOnly && !s.Standby && !c.ReadOnly {
		e.fail("-pldb: default_transaction_read_only is on for %s, so it takes no updates: end that, or use -ord", name)
	}
	if s.Public {
		e.warnings = append(e.warnings, fmt.Sprintf("-pldb: the engine %s: %s", name, pg.PublicWarning))
	}
	e.notes = append(e.notes, "durability: "+s.Durability, "connection to the engine: "+s.Link)
}

// start does with files and logs what a start does before it changes any.
func (e *examiner) start() {
	c := e.cfg
	wrong, notes := db.Examine(c.Databases, db.Options{LogDir: c.UpdateLog, NoRepair: c.NoRepair, AsIs: c.AsIs, ReadOnly: c.ReadOnly,
		Services: c.servicesDatabase(), Now: c.Now})
	e.notes = append(e.notes, notes...)
	for _, err := range wrong {
		if open, ok := errors.AsType[*dberr.OpenError](err); ok {
			e.fail("database %s: %s", open.Expr, reason(open.Err))
			continue
		}
		e.fail("update log %w", err)
	}
}

// ports checks whether the server can listen.
func (e *examiner) ports() {
	if _, err := resolve(e.cfg.Host); err != nil {
		e.fail("-host: %w", err)
		return
	}
	if addr := e.cfg.Admin.Addr; addr != "" {
		if _, err := e.cfg.Admin.host(); err != nil {
			e.wrong = append(e.wrong, err)
		} else {
			e.listen("-admin", "tcp", addr)
		}
	}
	names := map[int]string{}
	for _, p := range e.cfg.ports() {
		if p.port == 0 {
			continue
		}
		if p.port > MaxPort && p.option == "-port" {
			e.fail("-port %d: a port is at most %d, clients cannot parse more", p.port, MaxPort)
			continue
		}
		if other, taken := names[p.port]; taken {
			e.fail("%s and %s have the same port, %d", other, p.option, p.port)
			continue
		}
		names[p.port] = p.option
		e.listen(p.option, "tcp4", net.JoinHostPort(e.cfg.Host, strconv.Itoa(p.port)))
	}
}

// listen tries an address.
func (e *examiner) listen(option, network, addr string) {
	l, err := new(net.ListenConfig).Listen(context.Background(), network, addr)
	_, port, _ := net.SplitHostPort(addr) // Listen says what is wrong with it
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e.notes = append(e.notes, fmt.Sprintf("%s: port %s is in use, maybe by the server that is running", option, port))
	case err != nil:
		e.fail("%s: %w", option, err)
	default:
		l.Close()
	}
}

// portOption is a port that the server listens on.
type portOption struct {
	option string
	port   int
}

// ports lists the ports of all protocols.
func (c *Config) ports() []portOption {
	all := []portOption{{"-port", c.Port}, {"-plain-port", c.TLS.PlainPort}}
	for _, row := range c.Services.table() {
		all = append(all, portOption{row.portOption(), row.port})
	}
	if m, ok := c.Plugins.memcache(); ok {
		all = append(all, portOption{"-memcache-port", m.Port})
	}
	return all
}
