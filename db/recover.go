package db

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/ulog"
)

const (
	privateSuffix = filestore.PrivateLog // directory of a file database's private log, beside the file
	privateLimit  = 64 << 20             // size of its segments: small, because whole ones are removed after checkpoints
)

// recover brings the file databases up to date: first from private logs that a crash left, then from the shared one.
func (c *Catalog) recover() error {
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
		if _, ok := errors.AsType[*OpenError](err); ok {
			return err
		}
		return &LogError{c.log.Dir(), err}
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

// openError names the database in an error that does not yet.
func (d *DB) openError(err error) error {
	if _, ok := errors.AsType[*OpenError](err); ok {
		return err
	}
	return &OpenError{Expr: d.Expr(), Err: err}
}

// recoverPrivate replays a private log, and begins one where the database has no shared log.
func (c *Catalog) recoverPrivate(d *DB) error {
	if d.readOnly {
		return c.replayReadOnly(d, d.Path()+privateSuffix)
	}
	log := d.private
	if log == nil {
		return nil
	}
	d.private = nil
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
	if !d.followed && c.spent(log) {
		return c.dropLog(log)
	}
	if !d.followed {
		d.logger.Warn(log.Dir() + " is not the log of the database beside it; it is left as it is")
		return c.forgetLog(log)
	}
	err := d.file.Checkpoint()
	if err == nil { // the ledger may be behind the file: see leftBehind
		err = log.record(d.Path(), d.file.Meta())
	}
	if err != nil {
		return err
	}
	d.followed = false // the shared log takes over from here
	if err := c.adopt(d, c.log); err != nil {
		return err
	}
	return c.dropLog(log)
}

// leftBehind tells whether the shared log has taken over from a private one, and the process ended before it removed that:
// the file belongs to the shared log, has gone on since the private log last heard of it, and has everything that is in there. A copy of the
// file that has gone on elsewhere has not.
func (c *Catalog) leftBehind(d *DB, private *logDir) bool {
	if c.log == nil {
		return false
	}
	m := d.file.Meta()
	e, ok := private.ledger[m.ID.String()]
	return ok && e.Epoch < m.Epoch && m.LogID == filestore.ID(c.log.ID()) && c.spent(private)
}

// spent reports whether a private log has no update that a file may lack. Who dies while it begins or removes a log leaves such a one.
func (c *Catalog) spent(log *logDir) bool {
	open := log.open()
	if len(log.ledger) == 0 { // nobody has told yet which files there are
		open = map[string]filestore.LedgerEntry{"": {}}
	}
	for _, e := range open {
		if p, complete := c.behind(log.Dir(), e.DBID, true, e.Stamp); !complete || p.Updates > 0 {
			return false
		}
	}
	return true
}

// replayReadOnly shows a read-only database what its private log has beyond the file, without changing either.
func (c *Catalog) replayReadOnly(d *DB, dir string) error {
	m := d.file.Meta()
	id, err := ulog.Identity(c.opts.FS, dir)
	if errors.Is(err, os.ErrNotExist) || (err == nil && m.LogID != filestore.ID(id)) {
		return nil
	}
	if err != nil {
		return err
	}
	d.ownLog = dir
	return d.replayDir(c.opts.FS, dir, m, false)
}

// recoverShared replays the shared log into the databases that belong to it.
func (c *Catalog) recoverShared() error {
	var files []*DB
	for _, d := range c.all {
		if d.file != nil {
			files = append(files, d)
		}
	}
	return c.replay(c.log, files)
}

// target is a database that a replay goes to: updates of dbid after the stamp.
type target struct {
	db    *DB
	dbid  uint16
	after ulog.Stamp
}

// replay applies what the log has and the files have not.
func (c *Catalog) replay(log *logDir, files []*DB) error {
	var targets []target
	from := ulog.Stamp(math.MaxUint64)
	for _, d := range files {
		m := d.file.Meta()
		if d.followed = belongs(m, log); !d.followed {
			if log.restored(m) && !log.private {
				if err := c.olderCopy(d, m, log); err != nil {
					return d.openError(err)
				}
			}
			continue
		}
		if err := d.resume(log); err != nil {
			return err
		}
		if m.Stamp >= log.Last() {
			d.warnIfAhead(m, log)
			d.recallFrom(log)
			continue
		}
		targets = append(targets, target{d, m.DBID, m.Stamp})
		from = min(from, m.Stamp)
	}
	if len(targets) == 0 {
		return nil
	}
	r, err := log.NewReader(from)
	if err != nil {
		return err
	}
	err = targets[0].db.applyAll(r, targets, func(gap *ulog.GapError) error { return c.missing(targets, gap) })
	if damage, ok := errors.AsType[*ulog.DamageError](err); ok {
		err = c.missing(targets, damage)
	}
	if err == nil {
		for _, t := range targets {
			t.db.recallFrom(log)
		}
	}
	return errors.Join(err, r.Close())
}

// errHalfMerged refuses a file that is of no single moment without its log.
func errHalfMerged(m filestore.Meta) error {
	return &dberr.Error{Code: dberr.BrokenFile, Message: fmt.Sprintf("the last process stopped within a checkpoint, so the file needs its "+
		"update log, which was %s: start once with that log, or put a backup in place", m.LogDir)}
}

// belongs reports whether the log goes on where the file ends. A file that it does not belong to is opened as it is; what it then lacks, and
// whether that is refused, is told in passed_over.go.
func belongs(m filestore.Meta, log *logDir) bool {
	switch {
	case m.LogID != filestore.ID(log.ID()), log.restored(m):
		return false
	case log.closed(m) && m.Stamp < log.Last():
		return false // what follows is of another file
	}
	return true
}

// warnIfAhead says that the log has lost updates that the file has: no crash does that, a removed segment can.
func (d *DB) warnIfAhead(m filestore.Meta, log *logDir) {
	if m.Stamp > log.Last() {
		d.logger.Warn(fmt.Sprintf("%s is complete up to the time stamp %d, its update log %s ends before, at %d: slaves and "+
			"backups that follow the log miss the updates in between", d.Path(), m.Stamp, log.Dir(), log.Last()))
	}
}

// applyAll applies the reader's updates to the targets they are for. Damage ends it with an error, and so does a gap unless pass
// returns nil for it: what comes after a gap must not be applied. A nil pass passes over none.
func (d *DB) applyAll(r *ulog.Reader, targets []target, pass func(*ulog.GapError) error) error {
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if gap, ok := errors.AsType[*ulog.GapError](err); ok && pass != nil {
			if err = pass(gap); err == nil {
				r.SkipGap()
				continue
			}
			return err
		}
		if err != nil {
			return fmt.Errorf("replay the update log: %w", err)
		}
		u, err := ulog.ParseMessage(e.Message)
		if err != nil {
			return fmt.Errorf("replay the update log: stamp %d: %w", e.Stamp, err)
		}
		u.Origin = e.Origin
		for _, t := range targets {
			if t.dbid != u.DBID || e.Stamp <= t.after {
				continue
			}
			if err := t.db.replayOne(e.Stamp, u); err != nil {
				return err
			}
		}
	}
}

func (d *DB) replayOne(at ulog.Stamp, u ulog.Update) error {
	if !d.readOnly {
		if err := d.file.ThrottleReplay(); err != nil {
			return err
		}
	}
	d.store.Apply(at, []ulog.Update{u})
	return nil
}

// resume goes on with the log that the file belongs to. It comes before the replay: what is replayed stays in memory, and
// may already be on its way into the file, so a start never waits for a checkpoint. A file that is only read needs the log, too: each start
// reads there what the file lacks.
func (d *DB) resume(log *logDir) error {
	d.attach(log, d.file.Meta().Stamp)
	if d.readOnly {
		return nil
	}
	return d.file.Amend(func(m *filestore.Meta) {
		m.LogDir, m.Clean, m.Held = log.place(), false, false
		m.Epoch++
	})
}

// adopt makes the database a database of the log, if resume has not.
func (c *Catalog) adopt(d *DB, log *logDir) error {
	m, dbid := d.file.Meta(), d.index
	if err := c.disown(d, log); err != nil {
		return err
	}
	if err := d.outdo(log, m); err != nil {
		return err
	}
	if d.followed && m.DBID == dbid && m.Stamp <= log.Last() {
		return nil
	}
	if !d.followed && m.Merging != nil {
		return errHalfMerged(m)
	}
	if !d.followed && !log.private {
		if err := c.neverTaken(d, m, log); err != nil {
			return err
		}
	}
	d.attach(log, log.Last())
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

// afterCheckpoint notes a checkpoint in the log's directory, and lets go of what the database no longer needs of the log. A private log gets
// shorter at once.
func (d *DB) afterCheckpoint(log *logDir, hold *ulog.Hold, m filestore.Meta) {
	d.checkpointed.Store(log.Bytes())
	err := log.record(d.Path(), m)
	if err == nil {
		hold.Advance(m.Stamp)
	}
	if err == nil && log.private {
		err = log.RemoveFiles(m.Stamp)
	}
	if err != nil {
		d.logger.Error("after a checkpoint of " + d.Path() + ": " + err.Error())
	}
}

// checkpointIfBehind asks for a checkpoint when a crash now would mean to replay more than one overlay's worth of log.
func (d *DB) checkpointIfBehind(limit int64) {
	if d.file == nil || d.log == nil || d.readOnly {
		return
	}
	if limit <= 0 {
		limit = filestore.DefaultLimit
	}
	if d.log.Bytes()-d.checkpointed.Load() > 2*limit {
		d.file.AskCheckpoint()
	}
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
		return &LogError{l.Dir(), err}
	}
	for i := range c.logs {
		if c.logs[i] == l {
			c.logs = append(c.logs[:i:i], c.logs[i+1:]...)
			break
		}
	}
	return nil
}
