package db

import (
	"log/slog"
	"time"

	"gotycoon/db/expr"
	"gotycoon/db/plugged"
	"gotycoon/internal/vfs"
)

// Options of a Catalog.
type Options struct {
	// directory of the shared update log (-ulog); empty: file databases have private logs
	LogDir       string
	LogLimit     int64         // size limit of a log segment (-ulim); 0 means 256 MiB, below 0 none
	SID          uint16        // server ID in the log (-sid)
	SyncInterval time.Duration // the log is synced at least this often (-uasi); 0 means 1 s
	SyncEach     bool          // acknowledge after the sync (-oas)

	ReadOnly bool // refuse updates (-ord); files must exist
	TryLock  bool // do not wait for another process (-otl)
	NoRepair bool // refuse a log that ends in an incomplete group (-onr)
	// open files though acknowledged updates stay out that only their own logs have, see PassedOver
	// (-as-is)
	AsIs bool

	Engine *plugged.Engine // of all databases (-pldb); nil: each has the kind that its expression names

	Offline *Offline // the caller is a tool, not a server; nil: a server

	// expression of a database file for records of the server's own, see Catalog.Services; empty:
	// none
	Services string
	// its records that others rely on, few and small: they are stored as long as there is any room;
	// nil: all are
	Vital func(key []byte) bool

	ahead int // size of values that go ahead, for tests; 0 means what the log takes

	// overlay bytes of a file database that start a checkpoint; 0 means filestore.DefaultLimit
	CheckpointSize int64

	// removals that a file with lww=true remembers; 0 means filestore.DefaultRemovals
	Removals int64

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

// parse parses the expression of a database.
func (c *opening) parse(raw string, index uint16) (expr.Expr, error) {
	if c.opts.Engine != nil && index != ServicesIndex {
		return expr.ParsePlugged(raw), nil
	}
	return expr.Parse(raw)
}

// openPlugged opens the store of a plugged database.
func (c *opening) openPlugged(d *DB) error {
	s, err := c.opts.Engine.Open(d.expr.Raw, plugged.Options{ReadOnly: d.readOnly})
	if err != nil {
		return openError(err)
	}
	d.store = s
	if c.opts.Engine.Void {
		d.readOnly = false
	}
	return nil
}
