package db

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/ulog"
)

// A file whose process was killed is complete only together with its log. A start that does not have that log would make the file go on
// elsewhere, and nobody would ever look for the acknowledged updates again. So such a start is refused, unless Options.AsIs says that
// they may stay out; then the log line is an error, and report tells it as long as the server runs.
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
// An older copy is opened because somebody has put it there, mostly to undo what the later updates did, and the log keeps them: they can be
// brought in at any time. A private log keeps nothing: it is trimmed after the next checkpoint. In the last row the
// file was let go without the updates by an earlier start.

// PassedOver is what a database was opened without.
type PassedOver struct {
	LogDir  string     // the update log that has the updates
	DBID    uint16     // the database's number there
	After   ulog.Stamp // all of them have greater time stamps
	Updates int64      // how many there are; 0: unknown
	Last    ulog.Stamp // of the newest; 0: unknown

	gone bool // the log is not there
}

// String returns the columns of report.
func (p *PassedOver) String() string {
	return fmt.Sprintf("updates=%d after=%d last=%d dbid=%d log=%s", p.Updates, p.After, p.Last, p.DBID, p.LogDir)
}

// what says how many updates there are, for people.
func (p *PassedOver) what() string {
	if p.Updates == 0 {
		return fmt.Sprintf("updates after the time stamp %d may be missing", p.After)
	}
	return fmt.Sprintf("it lacks acknowledged updates: %d, with time stamps after %d and up to %d", p.Updates, p.After, p.Last)
}

// PassedOver returns what the database was opened without, nil where that is nothing.
func (d *DB) PassedOver() *PassedOver { return d.passed }

// Advice says what the database at a path lacks, and how to get it.
func (p *PassedOver) Advice(path string) string {
	return fmt.Sprintf("%s. Later updates in the update log %s can be brought in, while no server has the file open, with: %s",
		p.what(), p.LogDir, p.command(path))
}

// passOver notes what the database is opened without, and says so.
func (d *DB) passOver(say func(string, ...any), p *PassedOver, why string) {
	d.passed = p
	say(fmt.Sprintf("%s is opened as it is, complete up to the time stamp %d, because %s: %s",
		d.Path(), d.file.Meta().Stamp, why, p.Advice(d.Path())))
}

// command is the one that brings the updates in.
func (p *PassedOver) command(path string) string {
	return fmt.Sprintf("kttimedmgr recover -ts %d -dbid %d %s %s", p.After, p.DBID, path, p.LogDir)
}

// refuse returns why the database is not opened, or nil when the user takes it as it is.
func (c *Catalog) refuse(d *DB, p *PassedOver, why string) error {
	option := "-as-is"
	if o := c.opts.Offline; o != nil {
		option = "-onr"
		if o.Force || o.AsIs {
			d.passOver(d.logger.Error, p, why)
			return nil
		}
	}
	if c.opts.AsIs {
		d.passOver(d.logger.Error, p, why)
		return nil
	}
	help := fmt.Sprintf("Start with that log (-ulog %s), or bring them in with: %s", p.LogDir, p.command(d.Path()))
	switch {
	case p.gone:
		help = "Put the log back, there or beside the file, or name its directory with -ulog"
	case strings.HasSuffix(p.LogDir, privateSuffix):
		help = "Put the file and the directory back together, or bring them in with: " + p.command(d.Path())
	}
	return &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf("%s, and %s; its update log is %s. %s. To go on without them, use %s",
		why, p.what(), p.LogDir, help, option)}
}

// behind counts what a log has for a database after a stamp. anyDB counts the updates of all.
func (c *Catalog) behind(dir string, dbid uint16, anyDB bool, after ulog.Stamp) (p PassedOver, complete bool) {
	p = PassedOver{LogDir: dir, DBID: dbid, After: after}
	r, err := ulog.OpenReader(c.opts.FS, dir, after, ulog.ReaderOptions{})
	if err != nil {
		return p, false
	}
	complete = true
	for {
		var e ulog.Entry
		e, err = r.Next()
		if _, gap := errors.AsType[*ulog.GapError](err); gap {
			complete = false
			r.SkipGap()
			continue
		}
		if err != nil {
			break
		}
		if u, perr := ulog.ParseMessage(e.Message); perr == nil && (anyDB || u.DBID == dbid) {
			p.Updates++
			p.Last = e.Stamp
		}
	}
	return p, r.Close() == nil && complete && errors.Is(err, io.EOF)
}

// inspect looks for what a file lacks whose own log is not one of those that are opened.
func (c *Catalog) inspect(d *DB) error {
	m := d.file.Meta()
	if c.opts.Offline != nil || m.Clean && m.Merging == nil || m.LogID == (filestore.ID{}) || c.log != nil && m.LogID == filestore.ID(c.log.ID()) {
		return nil
	}
	dir, found, err := c.ownLog(d.Path(), m)
	if dir == d.Path()+privateSuffix {
		return nil // recoverPrivate opens it
	}
	if err != nil && !c.opts.AsIs {
		return &LogError{m.LogDir, err}
	}
	if m.Merging != nil && !d.readOnly {
		return errHalfMerged(m)
	}
	if !found {
		return c.withoutLog(d, m)
	}
	ledger, err := readLedger(c.opts.FS, dir)
	if err != nil {
		return &LogError{dir, err}
	}
	l := logDir{ledger: ledger}
	p, complete := c.behind(dir, m.DBID, false, m.Stamp)
	switch {
	case complete && p.Updates == 0 && m.Merging == nil:
		return nil
	case l.restored(m):
		d.passOver(d.logger.Warn, &p, "it is an older copy")
		return nil
	case d.readOnly && c.examines:
		return nil
	case d.readOnly:
		d.ownLog = dir
		return d.replayDir(c.opts.FS, dir, m, false)
	}
	return c.refuse(d, &p, "it was not closed by the last process that had it open")
}

// withoutLog decides about a file whose own log is not there.
func (c *Catalog) withoutLog(d *DB, m filestore.Meta) error {
	p := &PassedOver{LogDir: m.LogDir, DBID: m.DBID, After: m.Stamp, gone: true}
	if m.Held && m.Merging == nil {
		d.logger.Warn(fmt.Sprintf("%s is a copy that a command of synchronize has made; it is opened as it is, complete up to the time stamp %d",
			d.Path(), m.Stamp))
		return nil
	}
	return c.refuse(d, p, "it was not closed by the last process that had it open, its update log is not there")
}

// olderCopy decides about a file that has been put in the place of a newer one, with the log that has what came later.
func (c *Catalog) olderCopy(d *DB, m filestore.Meta, log *logDir) error {
	if d.asItIs {
		return nil
	}
	p, _ := c.behind(log.Dir(), m.DBID, false, m.Stamp)
	if log.private {
		return c.refuse(d, &p, "it is an older copy of the file that was there when the last process was killed")
	}
	d.passOver(d.logger.Warn, &p, "it is an older copy")
	return nil
}

// neverTaken looks, before a file becomes one of a log, for updates that the log has and that no file has taken: of this file, which was let go
// without them, or in a private log of whatever file was there.
func (c *Catalog) neverTaken(d *DB, m filestore.Meta, log *logDir) error {
	if d.asItIs || d.passed != nil && (c.opts.AsIs || !log.private) {
		return nil
	}
	for id, e := range log.open() {
		mine := id == m.ID.String()
		if !mine && !log.private {
			continue
		}
		after := e.Stamp
		if mine && m.TakenFrom == filestore.ID(log.ID()) { // a tool has brought the file up to date meanwhile
			after = max(after, m.Taken)
		}
		p, complete := c.behind(log.Dir(), e.DBID, log.private, after)
		switch {
		case p.Updates == 0 && complete:
		case log.private:
			return c.refuse(d, &p, "it is not the file that was there when the last process was killed")
		case m.LogID == (filestore.ID{}): // a backup, or brought to a moment by kttimedmgr recover
			d.passOver(d.logger.Warn, &p, "it is a copy")
		default:
			d.passOver(d.logger.Error, &p, "it was used without this log after a process had been killed")
		}
	}
	return nil
}

// ownLog finds the log of a file: where the caller says, beside the file as it was when both were moved or copied together, and
// where it was. The error says that there is something at one of these places that cannot be read, and may be the log.
func (c *Catalog) ownLog(path string, m filestore.Meta) (dir string, found bool, unread error) {
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
