package db

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/db/replay"
	"gotycoon/ulog"
)

// What a file is opened without.
//
// A file whose process was killed is complete only together with its log. A start without that log
// would let the file go on elsewhere, and nobody would ever look for the acknowledged updates
// again. So such a start is refused, unless Options.AsIs accepts the loss. Then the line in the
// server's log is an error, and report shows the loss as long as the server runs.
//
//	the file                                            its own log                 the start
//	not closed, another log or none is given            has updates for it          refused
//	the same, opened for reading only                   has updates for it          shows them
//	not closed, another log or none is given            has nothing more            goes on
//	the same                                            cannot be found             refused
//	the same, copied by a command of synchronize        cannot be found             goes on: the copy is whole
//	an older copy (the ledger is newer), -ulog          has updates for it          goes on, with a warning
//	an older copy, or another file, beside a FILE.wal   has updates                 refused
//	closed elsewhere, after a crash with this -ulog     has updates it never took   goes on, with an error
//
// An older copy is opened because somebody has put it there, mostly to undo the later updates. The
// log keeps them, so they can be brought in at any time. A private log keeps nothing: it is trimmed
// after the next checkpoint. In the last row an earlier start let the file go without the updates.

// passOver notes what the database is opened without, and logs it.
func (d *recovery) passOver(say func(string, ...any), p *replay.PassedOver, why string) {
	d.passed = p
	say(fmt.Sprintf("%s is opened as it is, complete up to the time stamp %d, because %s: %s",
		d.path(), d.file.Meta().Stamp, why, p.Advice(d.path())))
}

// refuse returns why the database is not opened, or nil when the user accepts the file as it is.
func (c *opening) refuse(d *DB, p *replay.PassedOver, why string) error {
	option := "-as-is"
	if o := c.opts.Offline; o != nil {
		option = "-onr"
		if o.Force || o.AsIs {
			d.recovery.passOver(d.logger.Error, p, why)
			return nil
		}
	}
	if c.opts.AsIs {
		d.recovery.passOver(d.logger.Error, p, why)
		return nil
	}
	help := fmt.Sprintf("Start with that log (-ulog %s), or bring them in with: %s", p.LogDir, p.Command(d.path()))
	switch {
	case p.Gone:
		help = "Put the log back, there or beside the file, or name its directory with -ulog"
	case strings.HasSuffix(p.LogDir, privateSuffix):
		help = "Put the file and the directory back together, or bring them in with: " + p.Command(d.path())
	}
	return &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf("%s, and %s; its update log is %s. %s. To go on without them, use %s",
		why, p.What(), p.LogDir, help, option)}
}

// inspect looks for what a file lacks whose own log is not one of those that are opened.
func (c *opening) inspect(d *DB) error {
	m := d.file.Meta()
	if c.opts.Offline != nil || m.Clean && m.Merging == nil || m.LogID == (filestore.ID{}) || c.log != nil && m.LogID == filestore.ID(c.log.ID()) {
		return nil
	}
	dir, found, err := c.ownLog(d.path(), m)
	if dir == d.path()+privateSuffix {
		return nil // recoverPrivate opens it
	}
	if err != nil && !c.opts.AsIs {
		return &dberr.LogError{Dir: m.LogDir, Err: err}
	}
	if m.Merging != nil && !d.readOnly {
		return errHalfMerged(m)
	}
	if !found {
		return c.withoutLog(d, m)
	}
	ledger, err := readLedger(c.opts.FS, dir)
	if err != nil {
		return &dberr.LogError{Dir: dir, Err: err}
	}
	l := logDir{ledger: ledger}
	p, complete := replay.Behind(c.opts.FS, dir, m.DBID, false, m.Stamp)
	switch {
	case complete && p.Updates == 0 && m.Merging == nil:
		return nil
	case l.restored(m):
		d.recovery.passOver(d.logger.Warn, &p, "it is an older copy")
		return nil
	case d.readOnly && c.examines:
		return nil
	case d.readOnly:
		d.recovery.ownLog = dir
		return d.recovery.replayDir(c.opts.FS, dir, m, false)
	}
	return c.refuse(d, &p, "it was not closed by the last process that had it open")
}

// withoutLog decides about a file whose own log cannot be found.
func (c *opening) withoutLog(d *DB, m filestore.Meta) error {
	p := &replay.PassedOver{LogDir: m.LogDir, DBID: m.DBID, After: m.Stamp, Gone: true}
	if m.Held && m.Merging == nil {
		d.logger.Warn(fmt.Sprintf("%s is a copy that a command of synchronize has made; it is opened as it is, complete up to the time stamp %d",
			d.path(), m.Stamp))
		return nil
	}
	return c.refuse(d, p, "it was not closed by the last process that had it open, its update log is not there")
}

// olderCopy decides about a file that has replaced a newer one; log has the later updates.
func (c *opening) olderCopy(d *DB, m filestore.Meta, log *logDir) error {
	if d.recovery.asItIs {
		return nil
	}
	p, _ := replay.Behind(c.opts.FS, log.Dir(), m.DBID, false, m.Stamp)
	if log.private {
		return c.refuse(d, &p, "it is an older copy of the file that was there when the last process was killed")
	}
	d.recovery.passOver(d.logger.Warn, &p, "it is an older copy")
	return nil
}

// neverTaken looks, before a log adopts a file, for updates in the log that no file has taken:
// updates of this file, which an earlier start let go without them, or, in a private log, of
// whatever file was there.
func (c *opening) neverTaken(d *DB, m filestore.Meta, log *logDir) error {
	if d.recovery.asItIs || d.recovery.passed != nil && (c.opts.AsIs || !log.private) {
		return nil
	}
	for id, e := range log.open() {
		mine := id == m.ID.String()
		if !mine && !log.private {
			continue
		}
		after := e.Stamp
		// a tool has brought the file up to date meanwhile
		if mine && m.TakenFrom == filestore.ID(log.ID()) {
			after = max(after, m.Taken)
		}
		p, complete := replay.Behind(c.opts.FS, log.Dir(), e.DBID, log.private, after)
		switch {
		case p.Updates == 0 && complete:
		case log.private:
			return c.refuse(d, &p, "it is not the file that was there when the last process was killed")
		case m.LogID == (filestore.ID{}): // a backup, or brought to a moment by kttimedmgr recover
			d.recovery.passOver(d.logger.Warn, &p, "it is a copy")
		default:
			d.recovery.passOver(d.logger.Error, &p, "it was used without this log after a process had been killed")
		}
	}
	return nil
}

// ownLog finds the log that a file names: where the caller says, beside the file (both were moved
// or copied together), and where the log was. unread says that one of these places cannot be read,
// and may be the log.
func (c *opening) ownLog(path string, m filestore.Meta) (dir string, found bool, unread error) {
	places := []string{path + privateSuffix}
	if c.opts.Offline != nil {
		places = append(places, c.opts.Offline.Logs...)
	}
	if beside := filepath.Dir(path); m.LogDir != "" {
		places = append(places, filepath.Join(beside, filepath.Base(m.LogDir)))
		if !filepath.IsAbs(m.LogDir) {
			places = append(places, filepath.Join(beside, m.LogDir))
		}
		places = append(places, m.LogDir)
	}
	for _, dir := range places {
		id, err := ulog.Identity(c.opts.FS, dir)
		switch {
		case err == nil && filestore.ID(id) == m.LogID:
			return dir, true, nil
		case err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && unread == nil:
			unread = err
		}
	}
	return "", false, unread
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
