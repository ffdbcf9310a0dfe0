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
	"gotycoon/db/replay"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// Offline tells Open that the caller is a tool that works on files while no server has them open.
//
// The last server may have crashed, and then the newest updates of a file are only in that server's
// log. So a file is first brought up to date from the log that the file names: its private log, or
// a shared log, which is only read. Where that log cannot be found, a database opened with ReadOnly
// shows what is in the file, with a warning; otherwise Open refuses. After that the file belongs to
// the tool's own log, is closed cleanly, and a server adopts it as it is.
type Offline struct {
	DBID  uint16   // index of the first database in the log of Options.LogDir (-dbid)
	Logs  []string // directories where a file's own log may be too, when it was moved
	AsIs  bool     // leave files as they are: the caller brings in the updates itself
	Force bool     // open a file as it is when its log cannot be found (-onr)
}

// findOwnLog finds, for a tool, the log that a file names. A private log, and the shared log that
// the tool writes to, are left to the ordinary recovery.
func (c *opening) findOwnLog(d *DB) error {
	o, m := c.opts.Offline, d.file.Meta()
	if o == nil || m.LogID == (filestore.ID{}) || c.log != nil && m.LogID == filestore.ID(c.log.ID()) {
		return nil
	}
	d.recovery.asItIs = o.AsIs
	if o.AsIs {
		return nil
	}
	dir, found, _ := c.ownLog(d.path(), m) // what cannot be read is not there for a tool
	switch {
	case !found && m.Clean && m.Merging == nil:
		return nil
	case !found:
		return c.missingLog(d, m)
	case dir == d.path()+privateSuffix:
		return nil
	}
	d.recovery.asItIs = true // from here on: whatever is missing has been told
	d.recovery.bringFrom = dir
	return nil
}

// bringUpToDate replays the shared log that findOwnLog has found. The log is only read.
func (c *opening) bringUpToDate(d *DB) error {
	if d.recovery.bringFrom == "" {
		return nil
	}
	dir, m := d.recovery.bringFrom, d.file.Meta()
	ledger, err := readLedger(c.opts.FS, dir)
	if err != nil {
		return &dberr.LogError{Dir: dir, Err: err}
	}
	l := logDir{ledger: ledger}
	switch {
	case l.restored(m):
		p, _ := replay.Behind(c.opts.FS, dir, m.DBID, false, m.Stamp)
		d.recovery.passOver(d.logger.Warn, &p, "it is an older copy")
		return nil
	case l.closed(m):
		return nil
	}
	if !d.readOnly {
		if err := c.syncLog(dir); err != nil {
			return &dberr.LogError{Dir: dir, Err: err}
		}
	}
	if err := c.replayFrom(dir, d, m); err != nil {
		return err
	}
	if d.readOnly {
		d.recovery.ownLog = dir
		return nil
	}
	return d.file.Checkpoint()
}

// replayFrom replays what the log in a directory has beyond a file.
func (c *opening) replayFrom(dir string, d *DB, m filestore.Meta) error {
	err := d.recovery.replayDir(c.opts.FS, dir, m, c.opts.Offline.Force)
	if damage, ok := errors.AsType[*ulog.DamageError](err); ok && c.opts.Offline.Force {
		d.logger.Warn(fmt.Sprintf("the update log of %s is damaged, what comes after is left out: %v", d.path(), damage))
		return nil
	}
	return err
}

// passGap decides about updates that may be missing from a file's log. It returns nil, after a
// warning, where this process only reads the file or was told to go on without them.
func (d *recovery) passGap(dir string, gap *ulog.GapError, force bool) error {
	missing := fmt.Sprintf("updates after the time stamp %d that are not in %s may be missing from its log %s, because files of it "+
		"were removed or are damaged", gap.From, d.path(), dir)
	if d.readOnly || force {
		d.logger.Warn(missing)
		return nil
	}
	return &dberr.Error{Code: dberr.BrokenFile, Message: missing + ": put them back, or use -onr to go on without them", Err: gap}
}

// replayDir applies what the log in a directory has beyond a file. force goes on where the log has
// a gap.
func (d *recovery) replayDir(fs vfs.FS, dir string, m filestore.Meta, force bool) error {
	r, err := ulog.OpenReader(fs, dir, m.Stamp, ulog.ReaderOptions{Report: func(err error) { d.logger.Warn(err.Error()) }})
	if err != nil {
		return err
	}
	pass := func(gap *ulog.GapError) error { return d.passGap(dir, gap, force) }
	err = errors.Join(filesReplay(r, []target{{d.core, m.DBID, m.Stamp}}, pass).Run(), r.Close())
	if err == nil && !d.readOnly {
		err = d.recallFromDir(fs, dir)
	}
	return err
}

// missingLog decides about a file whose log cannot be found. It is an error where the file would be
// changed: afterwards no server would ever look for the missing updates again.
func (c *opening) missingLog(d *DB, m filestore.Meta) error {
	text := fmt.Sprintf("%s was not closed by the last process that had it open, and its update log, which was %s, is not there: updates "+
		"of database %d after the time stamp %d may be missing", d.path(), m.LogDir, m.DBID, m.Stamp)
	switch {
	case m.Merging != nil && !d.readOnly:
		return errHalfMerged(m)
	case m.Merging != nil:
		text += ", and some newer ones may be there, because that process stopped within a checkpoint"
	}
	if d.readOnly || c.opts.Offline.Force {
		d.logger.Warn(text)
		d.recovery.asItIs = true
		return nil
	}
	return &dberr.Error{Code: dberr.BrokenFile, Message: text + ". Put the log back, name its directory with -ulog, or use -onr to go on without it"}
}

// syncLog makes a log that a crash has left durable as it is, before a file goes on from it.
func (c *opening) syncLog(dir string) error {
	names, err := c.opts.FS.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if filepath.Ext(name) != ".ulog" {
			continue
		}
		f, err := c.opts.FS.OpenFile(filepath.Join(dir, name), 0, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
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
