package timed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
)

// access is what a command does with a database.
type access int

const (
	reads   access = iota // the file is not changed
	writes                // the file must exist
	creates               // a missing file is created
)

// readsOr returns the access of a command that prints records, and removes them with an option.
func readsOr(removes bool) access {
	if removes {
		return writes
	}
	return reads
}

// open opens the database of an expression, up to date as db.Offline explains. The database is
// closed at the end of the run. change may alter the options first.
func (c *call) open(expr string, a access, change ...func(*db.Options)) (*db.DB, error) {
	o := c.options(a)
	for _, f := range change {
		f(&o)
	}
	if a == writes {
		if err := mustExist(expr); err != nil {
			return nil, c.openFailed(err)
		}
	}
	catalog, err := db.Open([]string{expr}, o)
	if err != nil {
		return nil, c.openFailed(err)
	}
	c.catalogs = append(c.catalogs, catalog)
	return catalog.DB(0), nil
}

// parseAndOpen reads the options and opens the database that the first argument names. It is for
// commands whose options do not decide about the access, which is known before they are read.
func (c *call) parseAndOpen(least, most int, a access) (*db.DB, error) {
	if err := c.parse(least, most); err != nil {
		return nil, err
	}
	return c.open(c.args[0], a)
}

// options returns the options for opening a database. For a command that makes no updates -ulog is
// only one more place where the file's log may be.
func (c *call) options(a access) db.Options {
	off := &db.Offline{DBID: uint16(*c.dbid), Force: c.noRepair}
	o := db.Options{
		SID:      uint16(*c.sid),
		ReadOnly: a == reads,
		TryLock:  c.tryLock,
		NoRepair: c.noRepair,
		Offline:  off,
		Logger:   slog.New(warnings{c.stderr}),
	}
	switch {
	case c.ulog == "":
	case a == reads:
		off.Logs = []string{c.ulog}
	default:
		o.LogDir, o.LogLimit = c.ulog, *c.ulim
	}
	return o
}

// truncates adds the option that empties a file.
func (c *call) truncates() *bool {
	return c.flags.Bool("otr", false, "begin with an empty file where there is one already")
}

// openFresh opens a database for writing. With truncate it first replaces the file by an empty one;
// the old file's updates, including those that are only in a log, are given up.
func (c *call) openFresh(expr string, truncate bool) (*db.DB, error) {
	if truncate {
		if err := db.Reset(expr, c.options(creates)); err != nil {
			return nil, c.openFailed(err)
		}
	}
	return c.open(expr, creates)
}

// mustExist returns an error if the file of a database is missing.
func mustExist(text string) error {
	e, err := expr.Parse(text)
	if err != nil || !e.Kind.OnDisk() {
		return err
	}
	if _, err := os.Stat(e.Path); errors.Is(err, os.ErrNotExist) {
		return &dberr.Error{Code: dberr.NoRepository, Message: "open failed (file not found)", Err: err}
	}
	return nil
}

// filePath returns the file of an expression. The file must exist.
func (c *call) filePath(text string) (string, error) {
	if err := mustExist(text); err != nil {
		return "", c.openFailed(err)
	}
	e, err := expr.Parse(text)
	if err == nil && !e.Kind.OnDisk() {
		err = &dberr.Error{Code: dberr.InvalidOperation, Message: "the database is in memory"}
	}
	if err != nil {
		return "", c.openFailed(err)
	}
	return filepath.EvalSymlinks(e.Path)
}

// openFailed gives an error of opening the form that scripts know.
func (c *call) openFailed(err error) error {
	if log, ok := errors.AsType[*dberr.LogError](err); ok {
		return fmt.Errorf("UpdateLogger::open failed: %s: %w", log.Dir, log.Err)
	}
	if open, ok := errors.AsType[*dberr.OpenError](err); ok {
		err = open.Err
	}
	return c.failed("DB::open", "", err)
}

// inUse gives the error for a file that a server has open the code that scripts know.
func inUse(err error) error {
	if errors.Is(err, filestore.ErrInUse) {
		return &dberr.Error{Code: dberr.NoRepository, Message: err.Error(), Err: err}
	}
	return err
}

// privateSuffix is appended to a file's name to make the name of its private log.
const privateSuffix = filestore.PrivateLog

// closeAll closes the databases that open has opened, in reverse order. All changes are in the
// files then.
func (c *call) closeAll() error {
	var first error
	for i := len(c.catalogs) - 1; i >= 0; i-- {
		if err := c.catalogs[i].Close(); err != nil {
			first = firstError(first, c.failed("DB::close", "", err))
		}
	}
	c.catalogs = nil
	return first
}

// warnings is a slog.Handler that prints the warnings and errors of the engine for people.
type warnings struct{ out io.Writer }

// Enabled reports whether a record is printed.
func (warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle prints one line.
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	_, err := fmt.Fprintf(w.out, "%s: %s: %s\n", program, map[bool]string{true: "error", false: "warning"}[r.Level >= slog.LevelError], line)
	return err
}

// WithAttrs returns the handler itself: the messages of the engine are complete without attributes.
func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup returns the handler itself.
func (w warnings) WithGroup(string) slog.Handler { return w }
