package db

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// logDir is an update log with the checkpoints of the databases that use it. It is prepared first,
// and begun when the start is decided; until then only ID, Dir, Last, ledger and Close may be used.
type logDir struct {
	*ulog.Log // nil until it is begun
	ready     *ulog.Prepared
	fs        vfs.FS

	mu      sync.Mutex // guards ledger and its file
	ledger  map[string]filestore.LedgerEntry
	private bool
}

// prepareLog prepares a log and adds it to the catalog. It changes nothing on the disk.
func (c *opening) prepareLog(dir string, limit int64) (*logDir, error) {
	ready, err := ulog.Prepare(dir, ulog.Options{
		Limit:        limit,
		Ahead:        c.opts.ahead,
		SyncEach:     c.opts.SyncEach,
		SyncInterval: c.opts.SyncInterval,
		NoRepair:     c.opts.NoRepair,
		TryLock:      c.examines,
		FS:           c.opts.FS,
		Logger:       c.opts.Logger,
		Now:          c.opts.Now,
	})
	if err != nil {
		return nil, &dberr.LogError{Dir: dir, Err: err}
	}
	l := &logDir{ready: ready, fs: c.opts.FS}
	if l.ledger, err = readLedger(c.opts.FS, dir); err != nil {
		return nil, &dberr.LogError{Dir: dir, Err: errors.Join(err, ready.Close())}
	}
	c.logs = append(c.logs, l)
	return l, nil
}

// begin makes the log ready for updates.
func (l *logDir) begin() error {
	log, err := l.ready.Begin()
	if err != nil {
		return &dberr.LogError{Dir: l.Dir(), Err: err}
	}
	l.Log = log
	return nil
}

// ID returns the identity of the log.
func (l *logDir) ID() [16]byte {
	if l.Log != nil {
		return l.Log.ID()
	}
	return l.ready.ID()
}

// Dir returns the log's directory.
func (l *logDir) Dir() string { return l.ready.Dir() }

// Last returns the newest stamp in the log.
func (l *logDir) Last() ulog.Stamp {
	if l.Log != nil {
		return l.Log.Last()
	}
	return l.ready.Last()
}

// Close closes the log; a log that was not begun stays as it is.
func (l *logDir) Close() error {
	if l.Log != nil {
		return l.Log.Close()
	}
	return l.ready.Close()
}

// readLedger reads the ledger of a log's directory. A directory without a ledger has no entries.
func readLedger(fs vfs.FS, dir string) (map[string]filestore.LedgerEntry, error) {
	ledger, err := filestore.ReadLedger(fs, dir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filestore.LedgerName, err)
	}
	return ledger, nil
}

// record notes a checkpoint of a database. The checkpoint is complete before, so an entry never
// leads its file.
func (l *logDir) record(path string, m filestore.Meta) error {
	return l.note(m.ID.String(), filestore.LedgerEntry{Path: path, Epoch: m.Epoch, Stamp: m.Stamp, DBID: m.DBID, Open: !m.Clean})
}

// note puts an entry into the ledger and writes the ledger's file.
func (l *logDir) note(name string, e filestore.LedgerEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ledger[name] = e
	return filestore.WriteLedger(l.fs, l.Dir(), l.ledger)
}

// open returns the entries of files that nobody has closed since.
func (l *logDir) open() map[string]filestore.LedgerEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := maps.Clone(l.ledger)
	maps.DeleteFunc(open, func(_ string, e filestore.LedgerEntry) bool { return !e.Open })
	return open
}

// restored reports whether a file is older than its last checkpoint, so somebody has put a copy in
// its place.
func (l *logDir) restored(m filestore.Meta) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.ledger[m.ID.String()]
	return ok && (m.Epoch < e.Epoch || m.Epoch == e.Epoch && m.Stamp < e.Stamp)
}

// closed reports whether a file is as its last process has closed it: the log has nothing more for
// it.
func (l *logDir) closed(m filestore.Meta) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.ledger[m.ID.String()]
	return ok && m.Clean && m.Epoch == e.Epoch && m.Stamp == e.Stamp
}

// place is the log's directory as files note it: absolute, so that tools find it wherever they run.
func (l *logDir) place() string {
	if dir, err := filepath.Abs(l.Dir()); err == nil {
		return dir
	}
	return l.Dir()
}

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
func (c *Catalog) RemoveLogFiles(upTo ulog.Stamp) error {
	upTo = min(upTo, c.log.Last())
	need, err := c.log.Removable(upTo)
	if err != nil || need == 0 {
		return err
	}
	err = c.moveOn(need)
	if c.gate.NoDisk() {
		return errors.Join(err, c.log.ReclaimFiles(upTo))
	}
	return errors.Join(err, c.log.RemoveFiles(upTo))
}

// moveOn writes everything up to a stamp to where a restart finds it without the log.
func (c *Catalog) moveOn(to ulog.Stamp) error {
	var failed error
	if c.beforeRemoval != nil {
		failed = c.beforeRemoval(to)
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

// attach lets the database's checkpoints follow the log, of which the file has everything up to a
// stamp.
func (d *recovery) attach(log *logDir, has ulog.Stamp) {
	d.hold.Release()
	hold := log.Hold(d.path(), has)
	d.hold = hold
	if !d.readOnly {
		d.file.Attach(log.Log, func(m filestore.Meta) { d.afterCheckpoint(log, hold, m) })
	}
}

// missing returns the error that says which updates files lack, and how to go on without them. For
// a tool that has been told to go on it only warns.
func (c *opening) missing(targets []target, reason error) error {
	var lacks, commands []string
	for _, t := range targets {
		lacks = append(lacks, fmt.Sprintf("%s (after the time stamp %d)", t.db.path(), t.after))
		commands = append(commands, "kttimedmgr vacuum -onr "+t.db.path())
	}
	text := fmt.Sprintf("updates that are not yet in %s may be missing from the log", strings.Join(lacks, ", "))
	if c.opts.Offline != nil && c.opts.Offline.Force {
		c.opts.Logger.Warn(fmt.Sprintf("%s: %v", text, reason))
		return nil
	}
	return fmt.Errorf("%s: %w. Put the files of the log back. To go on without these updates, while no server has the databases open: %s",
		text, reason, strings.Join(commands, "; "))
}
