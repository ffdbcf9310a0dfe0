package db

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db/expr"
	"gotycoon/internal/rescue"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
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

// Catalog is the databases that one server has open, and their update log.
type Catalog struct {
	opts     Options
	dbs      []*DB // those of the command line
	all      []*DB // and the one of the services, if any
	names    map[string]*DB
	log      *logDir   // the shared update log; nil without Options.LogDir
	logs     []*logDir // every open log, private ones included
	turn     atomic.Uint32
	decided  bool // the start is not refused: files and logs may be changed
	examines bool // there will be no start, and nobody is waited for
	failed   chan struct{}

	failOnce sync.Once
	err      error // set before failed is closed

	quit, stopped chan struct{} // of the keeper goroutine

	gate gate // of all databases

	beforeRemoval func(upTo ulog.Stamp) error // nil: nothing more to do

	guard atomic.Bool // clients may not update, see SetGuarded
}

// Open opens the databases of the expressions, in order, and brings file databases up to date from their logs. The
// error is an *OpenError for a database or a *LogError for a log.
func Open(exprs []string, o Options) (*Catalog, error) {
	o.setDefaults()
	c := &Catalog{opts: o, names: map[string]*DB{}, failed: make(chan struct{})}
	if err := c.openAll(exprs); err != nil {
		c.abandon()
		return nil, err
	}
	c.quit, c.stopped = make(chan struct{}), make(chan struct{})
	go func() { _ = rescue.Do(c.opts.Logger, "work of the databases in the background", c.keep) }()
	return c, nil
}

// abandon lets go of what an unsuccessful Open has opened. Files stay as they are: a log has what they lack. Before the start was decided,
// nothing has changed, and files that Open has made go.
func (c *Catalog) abandon() {
	for _, d := range c.all {
		switch {
		case d.file != nil && !c.decided:
			_ = d.file.Discard()
		case d.file != nil:
			_ = d.file.Abandon()
		default:
			_ = d.store.Close()
		}
	}
	for _, l := range c.logs {
		_ = l.Close()
	}
}

func (c *Catalog) openAll(exprs []string) error {
	if c.opts.LogDir != "" {
		c.opts.Opening("log", c.opts.LogDir)
		log, err := c.prepareLog(c.opts.LogDir, c.opts.LogLimit)
		if err != nil {
			return err
		}
		c.log = log
	}
	first := uint16(0)
	if c.opts.Offline != nil {
		first = c.opts.Offline.DBID
	}
	for i, raw := range exprs {
		d, err := c.openDB(raw, first+uint16(i))
		if err != nil {
			return err
		}
		c.dbs = append(c.dbs, d)
		c.names[d.Name()] = d
	}
	if c.opts.Services != "" {
		if _, err := c.openDB(c.opts.Services, ServicesIndex); err != nil {
			return err
		}
	}
	if err := c.decide(); err != nil {
		return err
	}
	c.decided = true
	if err := c.beginShared(); err != nil {
		return err
	}
	if err := c.recover(); err != nil {
		return err
	}
	for _, d := range c.all { // now: the log may have had more lines
		if err := d.findTextEnd(); err != nil {
			return d.openError(systemError(err))
		}
	}
	return nil
}

// beginShared begins the shared log, if there is one.
func (c *Catalog) beginShared() error {
	if c.log == nil {
		return nil
	}
	if err := c.log.begin(); err != nil {
		return err
	}
	for _, d := range c.all {
		d.log, d.shared = c.log.Log, true
	}
	return nil
}

// openDB opens one database without bringing it up to date.
func (c *Catalog) openDB(raw string, index uint16) (*DB, error) {
	c.opts.Opening("database", raw)
	d, err := c.newDB(raw, index)
	if err != nil {
		return nil, &OpenError{Expr: raw, Err: err}
	}
	c.all = append(c.all, d)
	return d, nil
}

func (c *Catalog) newDB(raw string, index uint16) (*DB, error) {
	e, err := c.parse(raw, index)
	if err != nil {
		return nil, err
	}
	d := &DB{expr: e, index: index, sid: c.opts.SID, now: c.opts.Now, logger: c.opts.Logger,
		readOnly: c.opts.ReadOnly, maxKey: maxMemoryKey, gate: &c.gate}
	d.stripes.init(e.Kind == expr.Text)
	if err := c.openStore(d); err != nil {
		return nil, err
	}
	d.sweeper.init(d.expr.Params, d.file != nil)
	if index != ServicesIndex {
		d.guard = &c.guard
	} else if d.vital = c.opts.Vital; d.vital == nil {
		d.vital = func([]byte) bool { return true }
	}
	return d, nil
}

// Len returns the number of databases.
func (c *Catalog) Len() int { return len(c.dbs) }

// ServicesIndex is the index of the services' database in the update log: out of the way of those of the command line, and unknown
// to servers without services, which leave its updates alone.
const ServicesIndex = 0xfffe

// Services returns the database for records of the server's own, nil without Options.Services.
func (c *Catalog) Services() *DB {
	if len(c.all) > len(c.dbs) {
		return c.all[len(c.dbs)]
	}
	return nil
}

// Numbered returns the database with a number in the update log: one of the command line, or that of the services. Replication, recovery and
// snapshots use it, never a protocol.
func (c *Catalog) Numbered(i int) *DB {
	if i == ServicesIndex {
		return c.Services()
	}
	return c.DB(i)
}

// DB returns the database with an index on the command line, nil where there is none.
func (c *Catalog) DB(i int) *DB {
	if i < 0 || i >= len(c.dbs) {
		return nil
	}
	return c.dbs[i]
}

// Lookup returns the database with a name, nil where there is none. Of databases with one name it is the last.
func (c *Catalog) Lookup(name string) *DB { return c.names[name] }

// Log returns the shared update log, nil without Options.LogDir.
func (c *Catalog) Log() *ulog.Log {
	if c.log == nil {
		return nil
	}
	return c.log.Log
}

// LogFiles lists the segments of the shared update log.
func (c *Catalog) LogFiles() ([]ulog.FileInfo, error) { return c.log.Files() }

// SyncLogs returns when every update made so far would survive a power cut. Databases without a log have none that could.
func (c *Catalog) SyncLogs() error {
	for _, l := range c.logs {
		if err := l.SyncTo(l.Last()); err != nil {
			return &LogError{l.Dir(), err}
		}
	}
	return nil
}

// Failed is closed when a log has failed: nothing is acknowledged any more.
func (c *Catalog) Failed() <-chan struct{} { return c.failed }

// Err says why Failed is closed.
func (c *Catalog) Err() error {
	select {
	case <-c.failed:
		return c.err
	default:
		return nil
	}
}

// Idle examines some records of one database after the other; the server calls it while nobody uses it.
func (c *Catalog) Idle() {
	if len(c.dbs) > 0 {
		c.dbs[int(c.turn.Add(1))%len(c.dbs)].idle()
	}
}

// keepEvery is how often the keeper looks after logs and databases.
const keepEvery = 250 * time.Millisecond

// keep notices failed logs, and has databases checkpointed that would need a long replay after a crash.
func (c *Catalog) keep() {
	defer close(c.stopped)
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.quit:
			return
		case <-tick.C:
		}
		for _, l := range c.logs {
			if err := l.Err(); err != nil {
				c.fail(&LogError{l.Dir(), err})
			}
		}
		for _, d := range c.all {
			d.checkpointIfBehind(c.opts.CheckpointSize)
		}
	}
}

func (c *Catalog) fail(err error) {
	c.failOnce.Do(func() {
		c.err = err
		close(c.failed)
	})
}

// CloseDB closes one database: what it has in memory goes to its file.
func (c *Catalog) CloseDB(i int) error { return c.closeDB(c.dbs[i]) }

func (c *Catalog) closeDB(d *DB) error {
	c.stopKeeper()
	d.abortTransaction()
	d.reachEnd()
	if d.file != nil {
		if err := c.finish(d); err != nil {
			return errors.Join(err, d.file.Abandon())
		}
	}
	if err := d.store.Close(); err != nil {
		return &OpenError{Expr: d.Expr(), Err: err}
	}
	return nil
}

// finish has a file take everything, and removes its private log. The file is closed afterwards: a process that waits for it would otherwise
// begin to write to a log that is being removed.
func (c *Catalog) finish(d *DB) error {
	if err := d.file.Finish(); err != nil {
		return &OpenError{Expr: d.Expr(), Err: err}
	}
	return c.closePrivateLog(d)
}

// CloseLog closes the services' database and the shared update log, after the databases of the command line.
func (c *Catalog) CloseLog() error {
	c.stopKeeper()
	if d := c.Services(); d != nil {
		if err := c.closeDB(d); err != nil {
			return err
		}
	}
	if c.log == nil {
		return nil
	}
	if err := c.log.Close(); err != nil {
		return &LogError{c.log.Dir(), err}
	}
	return nil
}

func (c *Catalog) stopKeeper() {
	if c.quit == nil {
		return
	}
	close(c.quit)
	<-c.stopped
	c.quit = nil
}

// Close closes databases and log.
func (c *Catalog) Close() error {
	c.stopKeeper()
	return c.closeAll()
}

func (c *Catalog) closeAll() error {
	var all error
	for i := range c.dbs {
		all = errors.Join(all, c.CloseDB(i))
	}
	return errors.Join(all, c.CloseLog())
}
