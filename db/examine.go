package db

import (
	"errors"
	"fmt"
	"os"

	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// Examine returns why a server with these options would not open the databases of the expressions: it opens logs and files as a start does,
// private logs beside files included, asks what decide asks, and changes nothing. Memory databases, and expressions that mean nothing, are
// left to others. The notes are no errors: what a running server has open cannot be looked at, and what a log has lost does not keep a
// server from starting.
func Examine(exprs []string, o Options) (wrong []error, notes []string) {
	o.setDefaults()
	e := &examiner{c: &Catalog{opts: o, examines: true}}
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
	c     *Catalog
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
		e.wrong = append(e.wrong, &OpenError{raw, openError(err)})
		return
	}
	e.c.all = append(e.c.all, &DB{expr: x, index: index, file: f, readOnly: e.c.opts.ReadOnly, logger: e.c.opts.Logger})
}

// decide is Catalog.decide, but goes on after an error.
func (e *examiner) decide() {
	var followers []*DB
	for _, d := range e.c.all {
		if e.busy && e.ofBusyLog(d) {
			continue
		}
		followed, err := e.c.decideOn(d)
		switch {
		case errors.Is(err, vfs.ErrLocked):
			e.notes = append(e.notes, fmt.Sprintf("database %s: its log is in use; it was not looked at", d.Expr()))
		case err != nil:
			e.wrong = append(e.wrong, d.openError(err))
		case followed:
			followers = append(followers, d)
		}
	}
	if e.c.log != nil {
		if err := e.c.lookForGaps(e.c.log, followers); err != nil {
			e.wrong = append(e.wrong, &LogError{e.c.log.Dir(), err})
		}
	}
}

// ofBusyLog reports whether a file belongs to the shared log that another process has open.
func (e *examiner) ofBusyLog(d *DB) bool {
	id, err := ulog.Identity(e.c.opts.FS, e.c.opts.LogDir)
	return err == nil && filestore.ID(id) == d.file.Meta().LogID
}
