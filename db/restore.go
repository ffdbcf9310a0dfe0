package db

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/ordered"
	"gotycoon/db/record"
	"gotycoon/db/replay"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// loader puts records into a database that nobody uses yet, past the update log. It is for one
// goroutine.
type loader struct {
	db    *core
	ups   []ulog.Update
	room  []byte // keys and values of ups
	count int64  // records that can expire
}

const (
	loadRecords = 512
	loadBytes   = 256 << 10
)

// filling calls add for each record that a database is to have. value is in stored form; an expired
// record is stored too. Neither slice is kept. add fails for what the database cannot hold.
type filling = func(add func(key, value []byte) error) error

// Load has fill add records to the database, which must be in memory and unused by anybody else.
// Records that are there already stay, unless fill adds one with the same key.
func (d *DB) Load(fill func(add func(key, value []byte) error) error) error {
	if d.file != nil {
		return dberr.ErrNotImplemented
	}
	return load(&d.core, fill)
}

// Unload removes all records of a database in memory that nobody uses yet, as Load has stored them:
// nothing is logged.
func (d *DB) Unload() error {
	if d.file != nil {
		return dberr.ErrNotImplemented
	}
	d.store.Apply(0, []ulog.Update{{Op: ulog.OpClear}})
	return nil
}

func load(d *core, fill filling) error {
	l := &loader{db: d}
	err := fill(l.record)
	if err == nil {
		err = l.flush()
	}
	d.sweeper.mortals.Add(l.count)
	return err
}

// record stores a record, see filling.
func (l *loader) record(key, value []byte) error {
	d := l.db
	if err := d.checkKey(key); err != nil {
		return err
	}
	if len(value) > record.MaxValueSize+record.XTSize {
		return dberr.ErrLongValue
	}
	xt, plain, ok := d.Split(value)
	if !ok {
		return &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf("the value of %q has no expiration time: is it from a database with ktopts=p?", key)}
	}
	if xt != record.MaxXT {
		l.count++
	}
	return l.add(ulog.Update{Op: ulog.OpSet, Key: d.lines.target(key, plain), Value: value})
}

// add copies an update into the batch.
func (l *loader) add(u ulog.Update) error {
	if len(l.ups) == loadRecords || len(l.room)+len(u.Key)+len(u.Value) > loadBytes {
		if err := l.flush(); err != nil {
			return err
		}
	}
	at := len(l.room)
	l.room = append(append(l.room, u.Key...), u.Value...)
	u.Key, u.Value = l.room[at:at+len(u.Key):at+len(u.Key)], l.room[at+len(u.Key):len(l.room):len(l.room)]
	l.ups = append(l.ups, u)
	return nil
}

func (l *loader) flush() error {
	if l.db.file != nil {
		if err := l.db.file.ThrottleReplay(); err != nil {
			return systemError(err)
		}
	}
	if len(l.ups) > 0 {
		l.db.store.Apply(0, l.ups)
	}
	l.ups, l.room = l.ups[:0], l.room[:0]
	return nil
}

// restoringSuffix is added to the name of a database file while it is made from a snapshot.
const restoringSuffix = ".restoring"

// RestoreFile makes the database file that an expression names from the records that fill adds. If
// the file exists and is not empty, the error is os.ErrExist. The file gets its name when it is
// complete: a crash leaves nothing that Open would take for a database.
func RestoreFile(raw string, o Options, fill func(add func(key, value []byte) error) error) error {
	o.setDefaults()
	e, err := expr.Parse(raw)
	if err != nil {
		return err
	}
	if !e.Kind.OnDisk() {
		return dberr.ErrNotImplemented
	}
	if err := absent(e.Path); err != nil {
		return err
	}
	tmp := e.Path + restoringSuffix
	err = removeIfThere(tmp)
	if err == nil {
		err = fillFile(tmp, e, o, fill)
	}
	if err == nil {
		err = absent(e.Path)
	}
	if err == nil {
		err = os.Rename(tmp, e.Path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(tmp))
	}
	return systemError(vfs.OS{}.SyncDir(filepath.Dir(e.Path)))
}

// absent returns nil where there is no database file, or an empty one.
func absent(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err == nil && info.Mode().IsRegular() && info.Size() == 0:
		return nil
	case err == nil:
		err = os.ErrExist
	}
	return fmt.Errorf("%s: %w", path, err)
}

// fillFile makes a database file under a temporary name, complete and durable.
func fillFile(path string, e expr.Expr, o Options, fill filling) error {
	f, err := filestore.Open(path, filestore.Options{TryLock: true, Persistent: e.Params.Persistent, Limit: o.CheckpointSize, Logger: o.Logger})
	if err != nil {
		return openError(err)
	}
	d := &core{form: form{expr: e, now: o.Now, maxKey: filestore.MaxKeySize - ordered.KeyPrefix(e.Params.RComp)},
		logger: o.Logger, file: f, store: ordered.New(f, e.Params.RComp)}
	d.lines = newLines(&d.form)
	if err := load(d, fill); err != nil {
		return errors.Join(err, f.Abandon())
	}
	return systemError(f.Close())
}

// RollForward brings databases in memory, which have been loaded from snapshots, up to date.
// restored has the instants of the snapshots, by the indexes of the databases. The updates of the
// shared log after these instants are stored, whatever servers have made them. Nothing is logged
// again. RollForward is called before anybody uses the databases, and does nothing without a shared
// log. Where updates may be missing from the log, or the log is damaged, the error is a *LogError.
func (c *Catalog) RollForward(restored map[int]ulog.Stamp) error {
	if c.log == nil {
		return nil
	}
	loaders := map[uint16]*roll{}
	from := c.log.Last()
	for i, at := range restored {
		if d := c.dbs[i]; at < c.log.Last() {
			loaders[d.index] = &roll{loader{db: &d.core}, at}
			from = min(from, at)
		}
	}
	if len(loaders) == 0 {
		return nil
	}
	if err := c.rollAll(loaders, from); err != nil {
		return &dberr.LogError{Dir: c.log.Dir(), Err: err}
	}
	return nil
}

// roll is a database being rolled forward, with the updates after a stamp.
type roll struct {
	loader
	after ulog.Stamp
}

func (c *Catalog) rollAll(loaders map[uint16]*roll, from ulog.Stamp) error {
	r, err := c.log.NewReader(from)
	if err != nil {
		return err
	}
	// damage and gaps end it, as in the replay of files
	run := replay.Replay{Log: r, Failed: replayFailed}
	for dbid, l := range loaders {
		run.Targets = append(run.Targets, replay.Target{DBID: dbid, After: l.after, Apply: l.apply})
	}
	err = run.Run()
	if gap, ok := errors.AsType[*ulog.GapError](err); ok {
		err = fmt.Errorf("updates after the time stamp %d, where a snapshot ends or later, may be missing from the update log, because files of it "+
			"were removed or are damaged: put them back, or start once without -ulog to go on without them: %w", gap.From, gap)
	}
	for _, l := range loaders {
		err = errors.Join(err, l.flush())
		l.db.sweeper.mortals.Add(l.count)
	}
	return errors.Join(err, r.Close())
}

// apply stores an update of the log.
func (l *roll) apply(at ulog.Stamp, u ulog.Update) error {
	if u.Op == ulog.OpSet && !l.db.persistent() {
		if xt, _, ok := record.Split(u.Value); ok && xt != record.MaxXT {
			l.count++
		}
	}
	if err := l.add(u); err != nil {
		return replayFailed(at, err)
	}
	return nil
}

// snapshotEntry names the snapshots of a database in the ledger of a log.
func snapshotEntry(index uint16) string { return fmt.Sprintf("snapshot of database %d", index) }

// SnapshotTaken notes in the ledger that a snapshot of a database in memory is on the disk. Without
// a shared log it does nothing.
func (c *Catalog) SnapshotTaken(d *DB, path string, at ulog.Stamp) error {
	if c.log == nil || d.file != nil {
		return nil
	}
	return c.log.note(snapshotEntry(d.index), filestore.LedgerEntry{Path: path, Stamp: at})
}

// SnapshotOutdated reports whether a snapshot of a database is older than the last one noted:
// somebody has put it in place, and then the updates after it are not wanted.
func (c *Catalog) SnapshotOutdated(d *DB, at ulog.Stamp) bool {
	if c.log == nil {
		return false
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	e, ok := c.log.ledger[snapshotEntry(d.index)]
	return ok && at < e.Stamp
}

// Reset replaces the file that an expression names, if there is one, by an empty database, and
// removes its private log. Nobody may use either. For a database in memory Reset does nothing.
func Reset(raw string, o Options) error {
	o.setDefaults()
	e, err := expr.Parse(raw)
	if err != nil {
		return err
	}
	if _, err := os.Stat(e.Path); !e.Kind.OnDisk() || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	err = filestore.Reset(e.Path, filestore.Options{TryLock: o.TryLock, Persistent: e.Params.Persistent, Logger: o.Logger})
	if err != nil && !errors.Is(err, os.ErrNotExist) { // an empty file is none
		return openError(err)
	}
	if err := ulog.RemoveAll(o.FS, e.Path+privateSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return openError(err)
	}
	return nil
}

// CopyFile writes a copy of the database file to a path and replaces a file that is there. The copy
// has what a tool (Offline) has found in the log, is marked as cleanly closed, and servers know it
// as a copy of this moment. progress is told how many bytes have been written; it may be nil. For a
// database in memory CopyFile returns ErrNotImplemented.
func (d *DB) CopyFile(to string, progress func(bytes int)) (size int64, err error) {
	if d.file == nil {
		return 0, dberr.ErrNotImplemented
	}
	if same, err := sameFile(d.path(), to); err != nil || same {
		return 0, &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf("%s is the database itself", to), Err: err}
	}
	fresh := to + ".new"
	size, err = writeCopy(d.file, fresh, progress)
	if err == nil {
		err = d.recovery.completeCopy(fresh)
	}
	if err == nil {
		err = os.Rename(fresh, to)
	}
	if err != nil {
		return 0, systemError(errors.Join(err, removeIfThere(fresh)))
	}
	return size, systemError(vfs.OS{}.SyncDir(filepath.Dir(to)))
}

func sameFile(a, b string) (bool, error) {
	inA, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	inB, err := os.Stat(b)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(inA, inB), err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func writeCopy(file *filestore.Store, to string, progress func(int)) (int64, error) {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return 0, err
	}
	size, err := file.CopyTo(&counted{f, progress})
	if err == nil {
		err = f.Sync()
	}
	return size, errors.Join(err, f.Close())
}

// counted tells progress how much is written.
type counted struct {
	io.Writer
	progress func(int)
}

// Write writes and tells.
func (w *counted) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if w.progress != nil {
		w.progress(n)
	}
	return n, err
}

// completeCopy adds the updates that this database has from its log only in memory, and closes the
// copy.
func (d *recovery) completeCopy(path string) error {
	f, err := filestore.Open(path, filestore.Options{Logger: d.logger})
	if err != nil {
		return err
	}
	if d.ownLog == "" {
		return f.Abandon()
	}
	m := f.Meta()
	into := &core{form: form{expr: d.expr}, logger: d.logger, file: f, store: ordered.New(f, d.expr.Params.RComp)}
	into.recovery = &recovery{core: into}
	// this database was opened without them, too
	if err = into.recovery.replayDir(vfs.OS{}, d.ownLog, m, true); err != nil {
		return errors.Join(err, f.Abandon())
	}
	return f.Close()
}
