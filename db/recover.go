package db

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/db/replay"
	"gotycoon/ulog"
)

// Which log a file belongs to.
//
// A database file alone is not the database: the newest updates are only in its log until the next
// checkpoint. So a start must find the one log that continues the file, and must not take another.
// Replaying the wrong log destroys records, and ignoring the right one loses acknowledged updates.
//
// The file names its log: Meta.LogID is the log's identity, Meta.Stamp the last update that is in
// the file. The log's directory names its files: the ledger has, for each file, the epoch and stamp
// of the last checkpoint. Both together decide (belongs):
//
//	the file names     ledger of this log                the start
//	this log           same epoch and stamp, or older    replays what is after Stamp
//	this log           newer than the file               the file is an older copy: opened as it is
//	this log           same, file closed cleanly, and    adopts the file at the log's end: the later
//	                   the log goes on after Stamp       updates were made by another file
//	another log        -                                 adopts the file, if it was closed cleanly;
//	                                                     otherwise see passed_over.go
//
// Example. A file is at stamp 50 and epoch 7, and the ledger says epoch 7, stamp 50. The log goes
// on to 80: updates 51 to 80 are replayed. Now a user puts last week's backup in place, stamp 20,
// epoch 5. The ledger still says epoch 7, so this is an older copy. It is opened as it is, because
// undoing the later updates is the usual reason to put a backup in place; a warning has the command
// that brings them in.
//
// Epochs are needed because stamps alone cannot tell a backup from a file that is merely behind:
// both have a stamp below the ledger's. Every open raises the epoch, and so does the first
// checkpoint after synchronize has had the file copied.
//
// Rejected: keeping the position of every file in the log alone. Then a file copied to another
// server would look like a new database there, and copying files is how people have always moved
// databases of the original.

// recover brings the database files up to date: first from private logs that a crash left, then
// from the shared log.
func (c *opening) recover() error {
	for _, d := range c.all {
		if d.file == nil {
			continue
		}
		if err := c.bringUpToDate(d); err != nil {
			return d.openError(err)
		}
		if err := c.recoverPrivate(d); err != nil {
			return d.openError(err)
		}
	}
	c.recallInMemory()
	defer c.recallFiles()
	if c.log == nil {
		return nil
	}
	if err := c.recoverShared(); err != nil {
		if _, ok := errors.AsType[*dberr.OpenError](err); ok {
			return err
		}
		return &dberr.LogError{Dir: c.log.Dir(), Err: err}
	}
	for _, d := range c.all {
		if d.file == nil || d.readOnly {
			continue
		}
		if err := c.adopt(d, c.log); err != nil {
			return d.openError(err)
		}
	}
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

// recoverPrivate replays a private log, and begins one where the database has no shared log.
func (c *opening) recoverPrivate(d *DB) error {
	if d.readOnly {
		return c.replayReadOnly(d, d.path()+privateSuffix)
	}
	log := d.recovery.private
	if log == nil {
		return nil
	}
	d.recovery.private = nil
	if c.leftBehind(d, log) {
		return c.dropLog(log)
	}
	if err := log.begin(); err != nil {
		return err
	}
	if err := c.replay(log, []*DB{d}); err != nil {
		return err
	}
	if c.log == nil {
		d.log = log.Log
		return c.adopt(d, log)
	}
	if !d.recovery.followed && c.spent(log) {
		return c.dropLog(log)
	}
	if !d.recovery.followed {
		d.logger.Warn(log.Dir() + " is not the log of the database beside it; it is left as it is")
		return c.forgetLog(log)
	}
	err := d.file.Checkpoint()
	if err == nil { // the ledger may be behind the file: see leftBehind
		err = log.record(d.path(), d.file.Meta())
	}
	if err != nil {
		return err
	}
	d.recovery.followed = false // the shared log takes over from here
	if err := c.adopt(d, c.log); err != nil {
		return err
	}
	return c.dropLog(log)
}

// leftBehind reports whether the shared log has taken over from a private one, and the process
// ended before it removed the private log. Then the file belongs to the shared log, has gone on
// since the private log last heard of it, and has every update of the private log. A copy of the
// file that has gone on elsewhere does not.
func (c *opening) leftBehind(d *DB, private *logDir) bool {
	if c.log == nil {
		return false
	}
	m := d.file.Meta()
	e, ok := private.ledger[m.ID.String()]
	return ok && e.Epoch < m.Epoch && m.LogID == filestore.ID(c.log.ID()) && c.spent(private)
}

// spent reports whether a private log has no update that a file may lack. A process that dies while
// it begins or removes a log leaves such a log.
func (c *opening) spent(log *logDir) bool {
	open := log.open()
	if len(log.ledger) == 0 { // nobody has told yet which files there are
		open = map[string]filestore.LedgerEntry{"": {}}
	}
	for _, e := range open {
		if p, complete := replay.Behind(c.opts.FS, log.Dir(), e.DBID, true, e.Stamp); !complete || p.Updates > 0 {
			return false
		}
	}
	return true
}

// replayReadOnly shows a read-only database what its private log has beyond the file, and changes
// neither.
func (c *opening) replayReadOnly(d *DB, dir string) error {
	m := d.file.Meta()
	id, err := ulog.Identity(c.opts.FS, dir)
	if errors.Is(err, os.ErrNotExist) || (err == nil && m.LogID != filestore.ID(id)) {
		return nil
	}
	if err != nil {
		return err
	}
	d.recovery.ownLog = dir
	return d.recovery.replayDir(c.opts.FS, dir, m, false)
}

// recoverShared replays the shared log into the databases that belong to it.
func (c *opening) recoverShared() error {
	var files []*DB
	for _, d := range c.all {
		if d.file != nil {
			files = append(files, d)
		}
	}
	return c.replay(c.log, files)
}

// replay brings files up to date with what the log has beyond them.
func (c *opening) replay(log *logDir, files []*DB) error {
	var targets []target
	from := ulog.Stamp(math.MaxUint64)
	for _, d := range files {
		m := d.file.Meta()
		if d.recovery.followed = belongs(m, log); !d.recovery.followed {
			if log.restored(m) && !log.private {
				if err := c.olderCopy(d, m, log); err != nil {
					return d.openError(err)
				}
			}
			continue
		}
		if err := d.recovery.resume(log); err != nil {
			return err
		}
		if m.Stamp >= log.Last() {
			d.recovery.warnIfAhead(m, log)
			d.recovery.recallFrom(log)
			continue
		}
		targets = append(targets, target{&d.core, m.DBID, m.Stamp})
		from = min(from, m.Stamp)
	}
	if len(targets) == 0 {
		return nil
	}
	r, err := log.NewReader(from)
	if err != nil {
		return err
	}
	err = filesReplay(r, targets, func(gap *ulog.GapError) error { return c.missing(targets, gap) }).Run()
	if damage, ok := errors.AsType[*ulog.DamageError](err); ok {
		err = c.missing(targets, damage)
	}
	if err == nil {
		for _, t := range targets {
			t.db.recovery.recallFrom(log)
		}
	}
	return errors.Join(err, r.Close())
}

// warnIfAhead warns that the log has lost updates that the file has. No crash does that, but a
// removed segment can.
func (d *recovery) warnIfAhead(m filestore.Meta, log *logDir) {
	if m.Stamp > log.Last() {
		d.logger.Warn(fmt.Sprintf("%s is complete up to the time stamp %d, its update log %s ends before, at %d: slaves and "+
			"backups that follow the log miss the updates in between", d.path(), m.Stamp, log.Dir(), log.Last()))
	}
}

// adopt makes the database a database of the log, unless resume has done so.
func (c *opening) adopt(d *DB, log *logDir) error {
	m, dbid := d.file.Meta(), d.index
	if err := c.disown(d, log); err != nil {
		return err
	}
	if err := d.recovery.outdo(log, m); err != nil {
		return err
	}
	if d.recovery.followed && m.DBID == dbid && m.Stamp <= log.Last() {
		return nil
	}
	if !d.recovery.followed && m.Merging != nil {
		return errHalfMerged(m)
	}
	if !d.recovery.followed && !log.private {
		if err := c.neverTaken(d, m, log); err != nil {
			return err
		}
	}
	d.recovery.attach(log, log.Last())
	return d.file.Rebase(func(m *filestore.Meta) {
		m.Outlive()
		if m.LogID != (filestore.ID{}) && !strings.HasSuffix(m.LogDir, privateSuffix) {
			m.TakenFrom, m.Taken = m.LogID, m.Stamp
		}
		m.LogID, m.LogDir, m.DBID, m.Stamp = filestore.ID(log.ID()), log.place(), dbid, log.Last()
		m.PositionAt = m.Stamp // what the log remembers up to here does not count for this file
		m.Epoch++
		m.Held = false
	})
}
