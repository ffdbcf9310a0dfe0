package db

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/db/replay"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// A start, file by file:
//
//	open.go          opens logs and files, then has the start decided and carried out
//	decide.go        asks everything that can refuse the start
//	passed_over.go   what a file would be opened without, and whether that refuses the start
//	recover.go       brings files up to date and makes them files of their logs
//	remember.go      positions of a follower that are left
//	start.go         what all of these use: prepared logs, the replay of a log, errors

// opening is a catalog while it is opened: logs and files are prepared, the start is decided, and
// the files are brought up to date.
type opening struct {
	*Catalog
	decided  bool // the start is not refused: files and logs may be changed
	examines bool // there will be no start, and nobody is waited for
}

// abandon closes what an unsuccessful Open has opened. Files stay as they are: a log has what they
// lack. Before the start was decided nothing has changed, and files that Open has created are
// removed.
func (c *opening) abandon() {
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
	if c.groups != nil {
		_ = c.groups.Close()
	}
	for _, l := range c.logs {
		_ = l.Close()
	}
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

const (
	privateSuffix = filestore.PrivateLog // directory of a file database's private log, beside the file
	// size of its segments: small, because whole ones are removed after checkpoints
	privateLimit = 64 << 20
)

// openError gives an error of the file store the code and words of the original.
func openError(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &dberr.Error{Code: dberr.NoRepository, Message: "open failed (file not found)", Err: err}
	case errors.Is(err, os.ErrPermission):
		return &dberr.Error{Code: dberr.NoPermission, Message: "open failed (permission denied)", Err: err}
	case errors.Is(err, filestore.ErrInUse):
		return &dberr.Error{Code: dberr.NoRepository, Message: err.Error(), Err: err}
	case ofTheSystem(err):
		return systemError(err)
	}
	return &dberr.Error{Code: dberr.BrokenFile, Message: err.Error(), Err: err}
}

// ofTheSystem reports whether the operating system failed, which says nothing about the file.
func ofTheSystem(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM},
		func(e error) bool { return errors.Is(err, e) })
}

// openError names the database in an error that does not name one yet.
func (d *core) openError(err error) error {
	if _, ok := errors.AsType[*dberr.OpenError](err); ok {
		return err
	}
	return &dberr.OpenError{Expr: d.expr.Raw, Err: err}
}

// attach lets the database's checkpoints follow the log, of which the file has everything up to a
// stamp.
func (d *recovery) attach(log *logDir, has ulog.Stamp) {
	d.hold.Release()
	hold := log.Hold(ulog.Holder{Kind: ulog.Database, What: d.path()}, has)
	d.hold = hold
	if !d.readOnly {
		d.file.Attach(log.Log, func(m filestore.Meta) { d.afterCheckpoint(log, hold, m) })
	}
}

// resume continues the log that the file belongs to. It comes before the replay: replayed updates
// stay in memory and may already be on their way into the file, so a start never waits for a
// checkpoint. A file that is only read needs the log, too: each start reads there what the file
// lacks.
func (d *recovery) resume(log *logDir) error {
	d.attach(log, d.file.Meta().Stamp)
	if d.readOnly {
		return nil
	}
	return d.file.Amend(func(m *filestore.Meta) {
		m.LogDir, m.Clean, m.Held = log.place(), false, false
		m.Epoch++
	})
}

// afterCheckpoint notes a checkpoint in the log's directory, and releases what the database no
// longer needs of the log. Segments of a private log are removed at once.
func (d *recovery) afterCheckpoint(log *logDir, hold *ulog.Hold, m filestore.Meta) {
	d.checkpointed.Store(log.Bytes())
	err := log.record(d.path(), m)
	if err == nil {
		hold.Advance(m.Stamp)
	}
	if err == nil && log.private {
		err = log.RemoveFiles(m.Stamp)
	}
	if err != nil {
		d.logger.Error("after a checkpoint of " + d.path() + ": " + err.Error())
	}
}

// belongs reports whether the log goes on where the file ends. A file that does not belong to the
// log is opened as it is; passed_over.go tells what the file then lacks, and when that is refused.
func belongs(m filestore.Meta, log *logDir) bool {
	switch {
	case m.LogID != filestore.ID(log.ID()), log.restored(m):
		return false
	case log.closed(m) && m.Stamp < log.Last():
		return false // what follows is of another file
	}
	return true
}

// errHalfMerged refuses a file whose last checkpoint stopped half-way: without its log the file is
// of no single moment.
func errHalfMerged(m filestore.Meta) error {
	return &dberr.Error{Code: dberr.BrokenFile, Message: fmt.Sprintf("the last process stopped within a checkpoint, so the file needs its "+
		"update log, which was %s: start once with that log, or put a backup in place", m.LogDir)}
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

// target is a file that a replay goes to: it lacks the updates of dbid after the stamp.
type target struct {
	db    *core
	dbid  uint16
	after ulog.Stamp
}

// filesReplay returns the replay of a log into files. Damage ends it with an error, and so does a
// gap for which pass returns an error: what follows a gap must not be applied.
func filesReplay(r *ulog.Reader, files []target, pass func(*ulog.GapError) error) *replay.Replay {
	run := &replay.Replay{Log: r, Gap: pass, Failed: replayFailed}
	for _, t := range files {
		run.Targets = append(run.Targets, replay.Target{DBID: t.dbid, After: t.after, Apply: t.db.recovery.replayOne})
	}
	return run
}

// replayFailed names what was being done in an error of the log.
func replayFailed(at ulog.Stamp, err error) error {
	if at == 0 {
		return fmt.Errorf("replay the update log: %w", err)
	}
	return fmt.Errorf("replay the update log: stamp %d: %w", at, err)
}

// replayOne stores one update of a log.
func (d *recovery) replayOne(at ulog.Stamp, u ulog.Update) error {
	if !d.readOnly {
		if err := d.file.ThrottleReplay(); err != nil {
			return err
		}
	}
	d.store.Apply(at, []ulog.Update{u})
	return nil
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

// recallFrom gives a file the position in its log, if that is newer than the file's own. The file
// has every update of the log.
func (d *recovery) recallFrom(log *logDir) {
	if state, at := log.Remembered(); known(state) && !d.readOnly {
		d.file.SetPosition(state, at)
	}
}

// recallFromDir is recallFrom for a log that is only read.
func (d *recovery) recallFromDir(fs vfs.FS, dir string) error {
	state, at, err := ulog.RememberedIn(fs, dir)
	if err == nil && known(state) {
		d.file.SetPosition(state, at)
	}
	return err
}
