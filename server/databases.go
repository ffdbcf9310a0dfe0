package server

import (
	"errors"
	"fmt"
	"time"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/plugged"
	"gotycoon/services/quota"
)

// databases is the catalog from its opening to its closing, with the lines about it.
type databases struct {
	cfg       *Config
	log       logger
	catalog   *db.Catalog
	shared    *sharedEngine // that several servers share; nil: none
	snapshots *snapshots    // nil without Config.Snapshots.Dir
	silent    bool          // close without a word
}

// open restores the databases that live in snapshots and opens all. live says how often snapshots
// are taken later, and how much of the update log is kept. background is db.Options.Background. The
// error is the text of a log line.
func (d *databases) open(live *live, background func(change int)) (failed error) {
	engine, err := d.engine()
	if err != nil {
		return err
	}
	c := d.cfg
	if c.Plugins.shared() {
		if d.shared, err = c.openEngine(d.log); err != nil {
			return err
		}
		defer func() {
			if failed != nil {
				_ = d.shared.Close()
			}
		}()
	}
	d.snapshots = newSnapshots(c.Snapshots, len(c.Databases), live.snapshots, func() bool { return live.retention().On() }, d.log)
	opts := db.Options{
		LogDir:         c.UpdateLog,
		LogLimit:       c.UpdateLogLimit,
		SID:            c.sid(),
		SyncInterval:   c.SyncInterval,
		SyncEach:       c.SyncEach,
		ReadOnly:       c.ReadOnly,
		TryLock:        c.TryLock,
		NoRepair:       c.NoRepair,
		AsIs:           c.AsIs,
		Services:       c.servicesDatabase(),
		Vital:          quota.Vital,
		Engine:         engine,
		CheckpointSize: c.CheckpointSize,
		Removals:       c.Replication.Removals,
		Now:            c.Now,
		FS:             c.FS,
		Opening:        d.logOpening,
		Background:     background,
		Logger:         d.log.Logger,
	}
	if d.shared != nil {
		d.shared.use(&opts, c)
	}
	restore := restorer{d.snapshots, c.Databases, opts}
	found, err := restore.files()
	if err != nil {
		return d.describe(err)
	}
	if d.catalog, err = db.Open(c.Databases, opts); err != nil {
		return d.describe(err)
	}
	if err := restore.memory(d.catalog, found); err != nil {
		_ = d.catalog.Close() // the error of the snapshots is the reason
		return d.describe(err)
	}
	return nil
}

// engine returns the engine of all databases, nil where each has its own kind.
func (d *databases) engine() (*plugged.Engine, error) {
	path := d.cfg.Plugins.Database
	if path == "" || d.cfg.Plugins.shared() {
		return nil, nil // both are "none"
	}
	d.log.system("loading a plug-in database file: path=%s", RedactedURL(path))
	e, ok := plugged.Find(path)
	if !ok {
		return nil, fmt.Errorf("could not load a plug-in database file: %s", RedactedURL(path))
	}
	return &e, nil
}

func (d *databases) logOpening(what, path string) {
	if what == "log" {
		d.log.system("opening the update log: path=%s sid=%d", path, d.cfg.ServerID)
		return
	}
	d.log.system("opening a database: path=%s", path)
}

// describe makes an error the text of the established line. About the update log there are two
// lines: describe writes the first itself.
func (d *databases) describe(err error) error {
	if open, ok := errors.AsType[*dberr.OpenError](err); ok {
		return fmt.Errorf("could not open a database file: %s: %s", open.Expr, reason(open.Err))
	}
	if log, ok := errors.AsType[*dberr.LogError](err); ok {
		d.log.error("could not open the update log: %s", log.Dir)
		return fmt.Errorf("the update log: %w", log.Err)
	}
	return err
}

// reason is a database error as log lines show it, "NAME: MESSAGE".
func reason(err error) string {
	if e, ok := errors.AsType[*dberr.Error](err); ok {
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	return err.Error()
}

// close closes one database after the other, with its last checkpoint, then the update log, and
// reports whether everything could be closed.
func (d *databases) close() (ok bool) {
	if d.shared != nil {
		defer func() { _ = d.shared.Close() }()
	}
	if d.silent {
		_ = d.catalog.Close() // the reason of the end is in the log already
		return false
	}
	ok = true
	for i := range d.catalog.Len() {
		d.log.system("closing a database: path=%s", d.catalog.DB(i).Info().Expr)
		if err := d.catalog.CloseDB(i); err != nil {
			d.log.error("could not close a database file: %v", err)
			ok = false
		}
	}
	if err := d.catalog.CloseLog(); err != nil {
		d.log.error("could not close the update log: %v", err)
		ok = false
	}
	return ok
}

// synchronize is the periodic synchronization of -asi; hard, down to the disk, that of -ash.
func (d *databases) synchronize(hard bool) {
	d.log.info("synchronizing databases")
	for i := range d.catalog.Len() {
		if err := d.catalog.DB(i).Synchronize(hard, nil); err != nil {
			d.log.error("database error: %v", err)
		}
	}
}

// durability says what an acknowledgement means.
func durability(c *Config) string {
	interval := c.SyncInterval
	if interval <= 0 {
		interval = time.Second
	}
	if c.ReadOnly {
		return "durability: read only, nothing is written"
	}
	text := fmt.Sprintf("acknowledged updates of files and logs survive the end of the process; "+
		"they are on the disk within %.1f s (before the acknowledgement with -oas)", interval.Seconds())
	if c.SyncEach {
		text = "updates of files and logs are on the disk before they are acknowledged"
	}
	switch {
	case !c.Plugins.shared():
		return "durability: " + text
	case c.servicesDatabase() == "":
		return "durability: of records, the engine's"
	}
	return "durability: of records, the engine's; " + text
}
