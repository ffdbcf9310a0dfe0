package db

import (
	"log/slog"
	"strings"
	"time"

	"gotycoon/db/expr"
	"gotycoon/db/mapstore"
	"gotycoon/db/store"
	"gotycoon/db/voidstore"
	"gotycoon/internal/vfs"
)

// Options of a Catalog.
type Options struct {
	LogDir       string        // directory of the shared update log (-ulog); empty: file databases have private logs
	LogLimit     int64         // size limit of a log segment (-ulim); 0 means 256 MiB, below 0 none
	SID          uint16        // server ID in the log (-sid)
	SyncInterval time.Duration // the log is synced at least this often (-uasi); 0 means 1 s
	SyncEach     bool          // acknowledge after the sync (-oas)

	ReadOnly bool // refuse updates (-ord); files must exist
	TryLock  bool // do not wait for another process (-otl)
	NoRepair bool // refuse a log that ends in an incomplete group (-onr)
	AsIs     bool // open files though acknowledged updates stay out that only their own logs have, see PassedOver (-as-is)

	Engine *Engine // of all databases (-pldb); nil: each has the kind that its expression names

	Offline *Offline // the caller is a tool, not a server; nil: a server

	Services string                // expression of a database file for records of the server's own, see Catalog.Services; empty: none
	Vital    func(key []byte) bool // its records that others rely on, few and small: they are stored as long as there is any room; nil: all are

	ahead int // size of values that go ahead, for tests; 0 means what the log takes

	CheckpointSize int64 // overlay bytes of a file database that start a checkpoint; 0 means filestore.DefaultLimit

	Removals int64 // removals that a file with lww=true remembers; 0 means filestore.DefaultRemovals

	Opening func(what, path string) // told "log" or "database" before each is opened; may be nil
	Logger  *slog.Logger            // nil means silent
	Now     func() time.Time        // nil means time.Now
	FS      vfs.FS                  // where logs are; nil means vfs.OS
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.SyncInterval <= 0 {
		o.SyncInterval = time.Second
	}
	if o.Opening == nil {
		o.Opening = func(string, string) {}
	}
}

// OpenError says which database could not be opened and why.
type OpenError struct {
	Expr string
	Err  error
}

// Error names the database and the reason.
func (e *OpenError) Error() string { return e.Expr + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *OpenError) Unwrap() error { return e.Err }

// LogError says that an update log could not be opened or has failed.
type LogError struct {
	Dir string
	Err error
}

// Error names the log's directory and the reason.
func (e *LogError) Error() string { return e.Dir + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *LogError) Unwrap() error { return e.Err }

// Engine keeps records in another way than the databases of this package. A server that is given one (-pldb) opens all its
// databases with it. Expiration, capacity limits, locking, the update log and replication come from this package, whatever the
// engine. docs/engines.md tells how to add one.
type Engine struct {
	File string // its name: the last component of the path that -pldb is given

	// Open opens one database. name is the expression of the command line, untouched. Keys come in byte order.
	Open func(name string, o EngineOptions) (store.Store, error)

	Void bool // nothing is ever stored, so that updates are taken also with -ord
}

// EngineOptions is what an engine is told about the database that it opens.
type EngineOptions struct {
	ReadOnly bool // there will be no updates
}

// engines is the table of all engines.
func engines() []Engine {
	return []Engine{
		{File: "ktplugdbmap.so", Open: func(string, EngineOptions) (store.Store, error) { return mapstore.New(), nil }},
		{File: "ktplugdbvoid.so", Open: func(string, EngineOptions) (store.Store, error) { return voidstore.Store{}, nil }, Void: true},
	}
}

// FindEngine returns the engine that a path names, wherever the path points: engines are part of the program, not files.
func FindEngine(path string) (Engine, bool) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for _, e := range engines() {
		if e.File == name {
			return e, true
		}
	}
	return Engine{}, false
}

// parse parses the expression of a database.
func (c *opening) parse(raw string, index uint16) (expr.Expr, error) {
	if c.opts.Engine != nil && index != ServicesIndex {
		return expr.ParsePlugged(raw), nil
	}
	return expr.Parse(raw)
}

// openPlugged opens the store of a plugged database.
func (c *opening) openPlugged(d *DB) error {
	s, err := c.opts.Engine.Open(d.expr.Raw, EngineOptions{ReadOnly: d.readOnly})
	if err != nil {
		return openError(err)
	}
	d.store = s
	if c.opts.Engine.Void {
		d.readOnly = false
	}
	return nil
}
