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
	"gotycoon/db/filestore"
)

// access is what a command does with a database.
type access int

const (
	reads   access = iota // the file is not changed
	writes                // and must exist
	creates               // and is created where it does not exist
)

// readsOr is the access of a command that removes what it prints, when it does.
func readsOr(removes bool) access {
	if removes {
		return writes
	}
	return reads
}

// open opens the database of an expression, up to date as db.Offline tells. It is closed when the command has ended. change may
// alter the options first.
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

// options are those of the command line. A command that makes no updates logs none: for it -ulog only is a place where the log of the
// file may be.
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

// openFresh opens a database for writing, and puts an empty file in the place of one that is there when truncate says so. The old file's
// updates are wanted by nobody, those in a log included.
func (c *call) openFresh(expr string, truncate bool) (*db.DB, error) {
	if truncate {
		if err := db.Reset(expr, c.options(creates)); err != nil {
			return nil, c.openFailed(err)
		}
	}
	return c.open(expr, creates)
}

// mustExist returns the error for a file that is not there.
func mustExist(expr string) error {
	e, err := db.ParseExpr(expr)
	if err != nil || !e.Kind.OnDisk() {
		return err
	}
	if _, err := os.Stat(e.Path); errors.Is(err, os.ErrNotExist) {
		return &db.Error{Code: db.NoRepository, Message: "open failed (file not found)", Err: err}
	}
	return nil
}

// filePath returns the file of an expression, which must exist.
func (c *call) filePath(expr string) (string, error) {
	if err := mustExist(expr); err != nil {
		return "", c.openFailed(err)
	}
	e, err := db.ParseExpr(expr)
	if err == nil && !e.Kind.OnDisk() {
		err = &db.Error{Code: db.InvalidOperation, Message: "the database is in memory"}
	}
	if err != nil {
		return "", c.openFailed(err)
	}
	return filepath.EvalSymlinks(e.Path)
}

// openFailed gives an error of opening the words that scripts know.
func (c *call) openFailed(err error) error {
	if log, ok := errors.AsType[*db.LogError](err); ok {
		return fmt.Errorf("UpdateLogger::open failed: %s: %w", log.Dir, log.Err)
	}
	if open, ok := errors.AsType[*db.OpenError](err); ok {
		err = open.Err
	}
	return c.failed("DB::open", "", err)
}

// inUse gives the error for a file that a server has open its code.
func inUse(err error) error {
	if errors.Is(err, filestore.ErrInUse) {
		return &db.Error{Code: db.NoRepository, Message: err.Error(), Err: err}
	}
	return err
}

// privateSuffix is the end of the name of a file's private log.
const privateSuffix = ".wal"

// closeAll closes what open has opened, the last one first. What has been changed then is in the files.
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

// warnings prints what the engine logs, as far as a person has to know it. It implements slog.Handler.
type warnings struct{ out io.Writer }

// Enabled tells whether a level is worth printing.
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

// WithAttrs returns the handler itself: the engine names everything in its messages.
func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup returns the handler itself.
func (w warnings) WithGroup(string) slog.Handler { return w }
