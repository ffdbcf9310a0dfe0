package db

import (
	"errors"
	"fmt"
	"io"
	"os"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// A start is decided before anything is changed. At that time files are open and logs are prepared,
// that is locked and looked at. decide asks every question that can refuse the start, of all
// databases, so that a refusal because of the last database leaves the first one, the logs and
// their directories as they were. It also logs what the start goes on without; recover only carries
// out what was decided.
//
// One refusal may come later: damage in the middle of a segment that is not the newest is found
// when the segment is replayed.

// decide returns why the start is refused.
func (c *opening) decide() error {
	var followers []*DB
	for _, d := range c.all {
		if d.file == nil {
			continue
		}
		followed, err := c.decideOn(d)
		if err != nil {
			return d.openError(err)
		}
		if followed {
			followers = append(followers, d)
		}
	}
	if c.log == nil {
		return nil
	}
	if err := c.lookForGaps(c.log, followers); err != nil {
		return &dberr.LogError{Dir: c.log.Dir(), Err: err}
	}
	return nil
}

// decideOn decides about one database file. It reports whether the file will be replayed from the
// shared log.
func (c *opening) decideOn(d *DB) (followed bool, err error) {
	if err := c.findOwnLog(d); err != nil {
		return false, err
	}
	if err := c.inspect(d); err != nil {
		return false, err
	}
	taken, err := c.decidePrivate(d)
	if err != nil || c.log == nil || taken {
		return false, err
	}
	m := d.file.Meta()
	if belongs(m, c.log) {
		return true, nil
	}
	if m.Merging != nil && !d.readOnly && d.recovery.bringFrom == "" {
		return false, errHalfMerged(m)
	}
	return false, nil
}

// decidePrivate prepares the private log beside a file, where there is one or will be, and decides
// about it. It reports whether the file is brought up to date from it.
func (c *opening) decidePrivate(d *DB) (taken bool, err error) {
	dir := d.path() + privateSuffix
	_, err = c.opts.FS.Stat(dir)
	if d.readOnly || errors.Is(err, os.ErrNotExist) && c.log != nil {
		return false, nil
	}
	log, err := c.prepareLog(dir, privateLimit)
	if err != nil {
		return false, err
	}
	log.private, d.recovery.private = true, log
	if c.leftBehind(d, log) {
		return false, nil
	}
	m := d.file.Meta()
	if belongs(m, log) {
		return true, c.lookForGaps(log, []*DB{d})
	}
	if log.restored(m) {
		if err := c.olderCopy(d, m, log); err != nil {
			return false, err
		}
	}
	switch {
	case c.log != nil:
		return false, nil
	case m.Merging != nil && d.recovery.bringFrom == "":
		return false, errHalfMerged(m)
	}
	return false, c.neverTaken(d, m, log)
}

// lookForGaps returns an error where a log lacks updates that files need. A log whose segments seem
// to be whole is not read for this.
func (c *opening) lookForGaps(log *logDir, files []*DB) error {
	targets, from := targetsOf(log, files)
	if len(targets) == 0 || c.opts.Offline != nil && c.opts.Offline.Force {
		return nil
	}
	r, err := ulog.OpenReader(c.opts.FS, log.Dir(), from, ulog.ReaderOptions{})
	if err != nil {
		return err
	}
	err = r.Lost()
	for err == nil && !log.ready.Whole() {
		_, err = r.Next()
	}
	if err == nil || errors.Is(err, io.EOF) {
		return r.Close()
	}
	if _, gap := errors.AsType[*ulog.GapError](err); gap {
		err = c.missing(targets, err)
	} else if _, damage := errors.AsType[*ulog.DamageError](err); damage {
		err = c.missing(targets, err)
	}
	return errors.Join(err, r.Close())
}

// targetsOf returns the files that lack updates of a log, and the stamp from which the log has to
// be read.
func targetsOf(log *logDir, files []*DB) (targets []target, from ulog.Stamp) {
	for _, d := range files {
		m := d.file.Meta()
		if m.Stamp >= log.Last() {
			continue
		}
		if targets == nil {
			from = m.Stamp
		}
		targets = append(targets, target{&d.core, m.DBID, m.Stamp})
		from = min(from, m.Stamp)
	}
	return targets, from
}

// Examine returns why a server with these options would not open the databases of the expressions.
// It opens logs and files as a start does, private logs beside files included, asks what decide
// asks, and changes nothing. It leaves out databases in memory and expressions that name no
// database. The notes are no errors: files that a running server has open cannot be looked at, and
// what a log has lost does not keep a server from starting.
func Examine(exprs []string, o Options) (wrong []error, notes []string) {
	o.setDefaults()
	e := &examiner{c: &opening{Catalog: &Catalog{opts: o}, examines: true}}
	defer e.c.abandon() // nothing is decided: it closes, and that is all
	if o.LogDir != "" {
		e.log(o.LogDir)
	}
	for i, raw := range exprs {
		e.file(raw, uint16(i))
	}
	if o.Services != "" {
		e.file(o.Services, ServicesIndex)
	}
	e.decide()
	for _, l := range e.c.logs {
		e.notes = append(e.notes, l.ready.Flaws()...)
	}
	return e.wrong, e.notes
}

type examiner struct {
	c     *opening
	busy  bool // another process has the shared log open
	wrong []error
	notes []string
}

// log prepares the shared log.
func (e *examiner) log(dir string) {
	log, err := e.c.prepareLog(dir, e.c.opts.LogLimit)
	switch {
	case errors.Is(err, vfs.ErrLocked):
		e.busy = true
		e.notes = append(e.notes, fmt.Sprintf("update log %s: in use, maybe by the server that is running; it was not looked at", dir))
	case err != nil:
		e.wrong = append(e.wrong, err)
	default:
		e.c.log = log
	}
}

// file opens a database file for reading.
func (e *examiner) file(raw string, index uint16) {
	x, err := expr.Parse(raw)
	if err != nil || !x.Kind.OnDisk() {
		return
	}
	f, err := filestore.Open(x.Path, filestore.Options{ReadOnly: true, TryLock: true, Logger: e.c.opts.Logger})
	switch {
	case errors.Is(err, os.ErrNotExist) && !e.c.opts.ReadOnly:
		f = filestore.Absent(x.Path)
	case errors.Is(err, filestore.ErrInUse):
		e.notes = append(e.notes, fmt.Sprintf("database %s: in use, maybe by the server that is running; it was not looked at", raw))
		return
	case err != nil:
		e.wrong = append(e.wrong, &dberr.OpenError{Expr: raw, Err: openError(err)})
		return
	}
	d := &DB{core{form: form{expr: x, index: index}, file: f, readOnly: e.c.opts.ReadOnly, logger: e.c.opts.Logger}}
	d.recovery = &recovery{core: &d.core}
	e.c.all = append(e.c.all, d)
}

// decide is opening.decide, but goes on after an error.
func (e *examiner) decide() {
	var followers []*DB
	for _, d := range e.c.all {
		if e.busy && e.ofBusyLog(d) {
			continue
		}
		followed, err := e.c.decideOn(d)
		switch {
		case errors.Is(err, vfs.ErrLocked):
			e.notes = append(e.notes, fmt.Sprintf("database %s: its log is in use; it was not looked at", d.expr.Raw))
		case err != nil:
			e.wrong = append(e.wrong, d.openError(err))
		case followed:
			followers = append(followers, d)
		}
	}
	if e.c.log != nil {
		if err := e.c.lookForGaps(e.c.log, followers); err != nil {
			e.wrong = append(e.wrong, &dberr.LogError{Dir: e.c.log.Dir(), Err: err})
		}
	}
}

// ofBusyLog reports whether a file belongs to the shared log that another process has open.
func (e *examiner) ofBusyLog(d *DB) bool {
	id, err := ulog.Identity(e.c.opts.FS, e.c.opts.LogDir)
	return err == nil && filestore.ID(id) == d.file.Meta().LogID
}
