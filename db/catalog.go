package db

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/gate"
	"gotycoon/ulog"
)

// Catalog is the databases that one server has open, and their update log.
type Catalog struct {
	opts   Options
	dbs    []*DB // those of the command line
	all    []*DB // and the one of the services, if any
	names  map[string]*DB
	log    *logDir   // the shared update log; nil without Options.LogDir
	logs   []*logDir // every open log, private ones included
	turn   atomic.Uint32
	failed chan struct{}

	failOnce sync.Once
	err      error // set before failed is closed

	quit, stopped chan struct{} // of the keeper goroutine

	gate gate.Gate // of all databases

	beforeRemoval func(upTo ulog.Stamp) error // nil: nothing more to do

	guard atomic.Bool // clients may not update, see SetGuarded
}

// Gate returns what refuses updates of all databases when there is no room.
func (c *Catalog) Gate() *gate.Gate { return &c.gate }

// Len returns the number of databases.
func (c *Catalog) Len() int { return len(c.dbs) }

// ServicesIndex is the index of the services' database in the update log. It is far from the
// indexes of the command line, and unknown to servers without services, which ignore its updates.
const ServicesIndex = 0xfffe

// Services returns the database for the server's own records, nil without Options.Services.
func (c *Catalog) Services() *DB {
	if len(c.all) > len(c.dbs) {
		return c.all[len(c.dbs)]
	}
	return nil
}

// Numbered returns the database with a number in the update log: one of the command line, or the
// services'. Replication, recovery and snapshots use it; protocols must not, see View.
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

// Lookup returns the database with a name, nil where there is none. Of databases with one name it
// is the last.
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

// SyncLogs returns when every update made so far would survive a power cut. A database without a
// log has no such updates.
func (c *Catalog) SyncLogs() error {
	for _, l := range c.logs {
		if err := l.SyncTo(l.Last()); err != nil {
			return &dberr.LogError{Dir: l.Dir(), Err: err}
		}
	}
	return nil
}

// Failed is closed when a log has failed: nothing is acknowledged any more.
func (c *Catalog) Failed() <-chan struct{} { return c.failed }

// Err returns why Failed is closed.
func (c *Catalog) Err() error {
	select {
	case <-c.failed:
		return c.err
	default:
		return nil
	}
}

// Idle looks for expired records in one database, the next one at each call. The server calls it
// while nobody uses the databases.
func (c *Catalog) Idle() {
	if len(c.dbs) > 0 {
		c.dbs[int(c.turn.Add(1))%len(c.dbs)].sweeper.idle()
	}
}

// keepEvery is how often the keeper looks after logs and databases.
const keepEvery = 250 * time.Millisecond

// keep notices failed logs, and asks for checkpoints of databases that would need a long replay
// after a crash.
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
				c.fail(&dberr.LogError{Dir: l.Dir(), Err: err})
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
	if t := d.tx.Load(); t != nil { // a client has left it open
		_ = t.Abort() // it has ended otherwise
	}
	d.reachEnd()
	if d.file != nil {
		if err := c.finish(d); err != nil {
			return errors.Join(err, d.file.Abandon())
		}
	}
	if err := d.store.Close(); err != nil {
		return &dberr.OpenError{Expr: d.expr.Raw, Err: err}
	}
	return nil
}

// finish writes everything to a file and removes its private log. The file is closed only
// afterwards: another process that waits for the file would otherwise write to a log that is being
// removed.
func (c *Catalog) finish(d *DB) error {
	if err := d.file.Finish(); err != nil {
		return &dberr.OpenError{Expr: d.expr.Raw, Err: err}
	}
	return c.closePrivateLog(d)
}

// CloseLog closes the services' database and the shared update log, after the databases of the
// command line.
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
		return &dberr.LogError{Dir: c.log.Dir(), Err: err}
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

// OpenLog is one of the update logs of a catalog.
type OpenLog struct {
	*ulog.Log
	Private bool // it belongs to one database file
}

// Logs returns all update logs that are open.
func (c *Catalog) Logs() []OpenLog {
	all := make([]OpenLog, 0, len(c.logs))
	for _, l := range c.logs {
		all = append(all, OpenLog{l.Log, l.private})
	}
	return all
}

// All returns all databases, the one of the services last if there is one.
func (c *Catalog) All() []*DB { return c.all }

// View is what protocols see of a catalog: the databases of the command line and the update log.
// The services' database cannot be reached through a View, by whatever number or name: a client
// that could write there could clear what sequences, quotas and locks have promised. Callers that
// may use the services' database ask the Catalog for it, by names of their own: Services, Numbered
// and All.
type View struct{ c *Catalog }

// View returns what protocols may see.
func (c *Catalog) View() *View { return &View{c} }

// Len returns the number of databases.
func (v *View) Len() int { return v.c.Len() }

// DB returns the database with an index on the command line, nil where there is none.
func (v *View) DB(i int) *DB { return v.c.DB(i) }

// Lookup returns the database with a name, nil where there is none. Of databases with one name it
// is the last.
func (v *View) Lookup(name string) *DB { return v.c.Lookup(name) }

// Log returns the shared update log, nil without Options.LogDir.
func (v *View) Log() *ulog.Log { return v.c.Log() }

// LogFiles lists the segments of the shared update log.
func (v *View) LogFiles() ([]ulog.FileInfo, error) { return v.c.LogFiles() }

// RemoveLogFiles removes segments of the shared update log, see Catalog.RemoveLogFiles.
func (v *View) RemoveLogFiles(upTo ulog.Stamp) error { return v.c.RemoveLogFiles(upTo) }

// SetGuarded makes the databases refuse updates of clients, or ends that, see Catalog.SetGuarded.
func (v *View) SetGuarded(on bool) error { return v.c.SetGuarded(on) }

// Guarded reports whether the databases refuse updates of clients.
func (v *View) Guarded() bool { return v.c.Guarded() }
