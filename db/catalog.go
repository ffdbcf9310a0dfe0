package db

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/engine/gather"
	"gotycoon/db/gate"
	"gotycoon/ulog"
)

// Catalog is the databases that one server has open, and their update log.
type Catalog struct {
	*View // what protocols may see

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

	quit       chan struct{}  // ends the goroutines of background
	background sync.WaitGroup // the keeper and the collector
	collects   chan struct{}  // of one: wakes the collector

	gate gate.Gate // of all databases

	groups *gather.Gather // nil without Options.Shared
	lanes  lanes          // of transactions in the engine
	claims terms          // of claims in the engine
	copies *copies        // nil without Options.Shared

	beforeRemoval func(upTo ulog.Stamp) error // nil: nothing more to do
	overdue       atomic.Int64                // see LogOverdue

	guard   guard
	onGuard func() // see OnGuard; nil: nobody wants to know
}

// OnGuard has set called after each SetGuarded, without a lock. It is called before clients come.
func (c *Catalog) OnGuard(set func()) { c.onGuard = set }

// OnRefusal has why called for each update that SetGuarded refuses: the client gets its error, or
// ErrReadOnly where it returns nil. It must be quick. It is set before clients come.
func (c *Catalog) OnRefusal(why func() error) { c.guard.why = why }

// Groups returns the groups in which operations go to the engine, nil without Options.Shared.
func (c *Catalog) Groups() *gather.Gather { return c.groups }

// EndCopies has files given up that are being made for commands of Synchronize, because their
// server stops.
func (c *Catalog) EndCopies() {
	if c.copies != nil {
		c.copies.end()
	}
}

// clearCopies removes the files that a killed server has left there.
func (c *Catalog) clearCopies() {
	var names []string
	for _, d := range c.dbs {
		names = append(names, d.Name())
	}
	c.copies.clear(names)
}

// Gate returns what refuses updates of all databases when there is no room.
func (c *Catalog) Gate() *gate.Gate { return &c.gate }

// PagesAsked returns how many pages of files scans have asked the system for so far, because they
// were not in memory. They wait for the disk then.
func (c *Catalog) PagesAsked() (n uint64) {
	for _, d := range c.dbs {
		if d.file != nil {
			n += d.file.PagesAsked()
		}
	}
	return n
}

// View is what protocols see of a catalog: the databases of the command line and the update log.
// The services' database cannot be reached through a View, by whatever number or name: a client
// that could write there could clear what sequences, quotas and locks have promised. Callers that
// may use the services' database ask the Catalog for it, by names of their own: Services, Numbered
// and All.
type View struct{ c *Catalog }

// Len returns the number of databases.
func (v *View) Len() int { return len(v.c.dbs) }

// DB returns the database with an index on the command line, nil where there is none.
func (v *View) DB(i int) *DB {
	if i < 0 || i >= len(v.c.dbs) {
		return nil
	}
	return v.c.dbs[i]
}

// Lookup returns the database with a name, nil where there is none. Of databases with one name it
// is the last.
func (v *View) Lookup(name string) *DB { return v.c.names[name] }

// Log returns the shared update log, nil without Options.LogDir.
func (v *View) Log() *ulog.Log {
	if v.c.log == nil {
		return nil
	}
	return v.c.log.Log
}

// LogFiles lists the segments of the shared update log.
func (v *View) LogFiles() ([]ulog.FileInfo, error) { return v.c.log.Files() }

// SetGuarded makes the databases refuse updates of clients as if they had been opened read-only, or
// ends that. Updates of a master are stored all the same. The services' database is not affected.
//
// When SetGuarded(true) has returned nil, no update of a client is appended to a log any more, and
// all that were appended are as safe as the mode promises: a follower that has received everything
// up to Log().Last() lacks nothing that was or will be acknowledged. Operations that wait for a
// transaction, the disk, or a key are refused when their turn comes (appendAndApply), and so is the
// commit of a transaction. SetGuarded waits for none of them, only for the append under way and for
// the log.
func (v *View) SetGuarded(on bool) error {
	v.Guard(on)
	if !on {
		return nil
	}
	for _, l := range v.c.logs {
		if err := l.Wait(l.Last()); err != nil {
			return &dberr.LogError{Dir: l.Dir(), Err: err}
		}
	}
	return nil
}

// Guard is SetGuarded without the wait for the logs, whose disk may hang: when Guard(true) has
// returned, no update of a client is appended any more, and the last ones may not be safe yet.
func (v *View) Guard(on bool) {
	v.c.guard.up.Store(on)
	if v.c.onGuard != nil {
		defer v.c.onGuard()
	}
	if !on {
		return
	}
	for _, d := range v.c.dbs {
		d.commitMu.Lock()
		//lint:ignore SA2001 when the lock is free, whoever has not seen the flag has appended
		d.commitMu.Unlock()
	}
}

// Guarded reports whether the databases refuse updates of clients, see SetGuarded.
func (v *View) Guarded() bool { return v.c.guard.up.Load() }

// Every database that could not be rebuilt without the log has a ulog.Hold, which keeps the log's
// segments. The hold of a file follows its checkpoints (attach). The hold of a database in memory
// follows its snapshots and belongs to the component that takes them. A Frozen has a hold of its
// own.

// RemoveLogFiles removes segments of the shared update log that hold nothing newer than upTo, and
// nothing newer than this call. The newest segment stays. Databases that still need the segments
// for their own recovery are checkpointed first, or get a snapshot (BeforeRemoval). Segments that
// others still need are kept all the same, see ulog.Hold; when the disk is full, followers' needs
// do not count.
//
// Where a database cannot move on, the segments that nobody needs are removed nevertheless: a full
// disk may be the reason.
func (v *View) RemoveLogFiles(upTo ulog.Stamp) error {
	upTo = min(upTo, v.c.log.Last())
	need, err := v.c.log.Removable(upTo)
	if err != nil || need == 0 {
		return err
	}
	err = v.c.moveOn(need, v.c.beforeRemoval)
	if v.c.gate.NoDisk() {
		return errors.Join(err, v.c.log.ReclaimFiles(upTo))
	}
	return errors.Join(err, v.c.log.RemoveFiles(upTo))
}

// TrimLog is RemoveLogFiles for a server that removes by itself the segments beyond its limits, so
// it is called again and again. Snapshots are taken only where the caller says so: most servers
// take them from time to time in any case. What was kept is returned, and is not in the log.
func (c *Catalog) TrimLog(k ulog.Limits, snapshots bool) (ulog.Trimmed, error) {
	done, err := c.trimLog(k, snapshots)
	c.overdue.Store(done.KeptBytes)
	return done, err
}

// LogOverdue returns how many bytes of the shared update log were beyond the limits at the last
// TrimLog, and were kept because somebody needs them.
func (c *Catalog) LogOverdue() int64 { return c.overdue.Load() }

func (c *Catalog) trimLog(k ulog.Limits, snapshots bool) (ulog.Trimmed, error) {
	upTo, err := c.log.Beyond(k)
	if err != nil || upTo == 0 {
		return ulog.Trimmed{}, err
	}
	upTo = min(upTo, c.log.Last())
	need, err := c.log.Removable(upTo)
	if err != nil || need == 0 {
		return ulog.Trimmed{}, err
	}
	before := c.beforeRemoval
	if !snapshots {
		before = nil
	}
	err = c.moveOn(need, before)
	done, terr := c.log.Trim(upTo, c.gate.NoDisk())
	return done, errors.Join(err, terr)
}

// moveOn writes everything up to a stamp to where a restart finds it without the log. before takes
// the snapshots; nil: none are taken.
func (c *Catalog) moveOn(to ulog.Stamp, before func(ulog.Stamp) error) error {
	var failed error
	if before != nil {
		failed = before(to)
	}
	for _, d := range c.all {
		if d.file == nil || d.readOnly || d.hold.From() >= to {
			continue
		}
		d.reachEnd()
		if err := d.file.Checkpoint(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("checkpoint %s: %w", d.path(), err))
		}
	}
	return failed
}

// BeforeRemoval has f called before files of the shared update log are removed whose updates go up
// to a stamp. f takes the snapshots of the databases that need the files, and advances their holds.
// An error of f is reported, and does not stop the removal of what nobody needs. BeforeRemoval is
// called before anybody uses the catalog.
func (c *Catalog) BeforeRemoval(f func(upTo ulog.Stamp) error) { c.beforeRemoval = f }

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

// All returns all databases, the one of the services last if there is one.
func (c *Catalog) All() []*DB { return c.all }

// Logs returns all update logs that are open: the shared one, see Log, and the private ones of
// database files.
func (c *Catalog) Logs() []*ulog.Log {
	all := make([]*ulog.Log, 0, len(c.logs))
	for _, l := range c.logs {
		all = append(all, l.Log)
	}
	return all
}

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

// collect removes what has expired or is over a limit in files whose clients have asked for that,
// see "Who collects" in sweep.go.
func (c *Catalog) collect() {
	goOn := func() error {
		select {
		case <-c.quit:
			return dberr.ErrInterrupted
		default:
			return nil
		}
	}
	for {
		select {
		case <-c.quit:
			return
		case <-c.collects:
		}
		for _, d := range c.dbs {
			d.sweeper.serve(goOn)
		}
	}
}

// sweepShared removes what has expired from databases that an engine keeps. Each server does so,
// and the engine sees to it that two do not wait for each other. While more expires than one call
// removes in a second, calls take a quarter of the time.
func (c *Catalog) sweepShared() {
	if c.groups == nil || c.opts.ReadOnly {
		return
	}
	next := sweepEvery
	for {
		pause := time.NewTimer(next/2 + rand.N(next))
		select {
		case <-c.quit:
			pause.Stop()
			return
		case <-pause.C:
		}
		began := time.Now()
		next = sweepEvery
		for _, d := range c.dbs {
			if d.persistent() {
				continue
			}
			if more, err := d.shared.swept(sweepLate); more && err == nil { // an error: the next time
				next = 0
			}
		}
		if next == 0 {
			next = min(sweepEvery, sweepRests*max(time.Since(began), time.Millisecond))
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
	c.stopBackground()
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
	c.stopBackground()
	if d := c.Services(); d != nil {
		if err := c.closeDB(d); err != nil {
			return err
		}
	}
	if c.groups != nil {
		_ = c.groups.Close() // never fails
		c.copies.close()
	}
	if c.log == nil {
		return nil
	}
	if err := c.log.Close(); err != nil {
		return &dberr.LogError{Dir: c.log.Dir(), Err: err}
	}
	return nil
}

func (c *Catalog) stopBackground() {
	if c.quit == nil {
		return
	}
	close(c.quit)
	c.background.Wait()
	c.quit = nil
}

// Close closes databases and log.
func (c *Catalog) Close() error {
	c.stopBackground()
	return c.closeAll()
}

func (c *Catalog) closeAll() error {
	var all error
	for i := range c.dbs {
		all = errors.Join(all, c.CloseDB(i))
	}
	return errors.Join(all, c.CloseLog())
}

// closePrivateLog ends and removes a private log: after a clean close the file has everything.
func (c *Catalog) closePrivateLog(d *DB) error {
	for _, l := range c.logs {
		if l.private && l.Log == d.log {
			return c.dropLog(l)
		}
	}
	return nil
}

// dropLog closes a private log and removes its directory.
func (c *Catalog) dropLog(l *logDir) error {
	if err := c.forgetLog(l); err != nil {
		return err
	}
	return ulog.RemoveAll(c.opts.FS, l.Dir())
}

// forgetLog closes a private log.
func (c *Catalog) forgetLog(l *logDir) error {
	if err := l.Close(); err != nil {
		return &dberr.LogError{Dir: l.Dir(), Err: err}
	}
	for i := range c.logs {
		if c.logs[i] == l {
			c.logs = append(c.logs[:i:i], c.logs[i+1:]...)
			break
		}
	}
	return nil
}
