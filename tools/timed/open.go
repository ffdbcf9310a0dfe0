package timed

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/expr"
)

// access is what a command does with a database.
type access int

const (
	reads   access = iota // the file is not changed
	writes                // and must exist
	creates               // and is created where it does not exist
)

// open opens the database of an expression, up to date as db.Offline tells. It is closed when the command has ended. change may
// alter the options first.
func (c *call) open(raw string, a access, change ...func(*db.Options)) (*db.DB, error) {
	o := c.options(a)
	for _, f := range change {
		f(&o)
	}
	if a == writes {
		if err := mustExist(raw); err != nil {
			return nil, c.openFailed(err)
		}
	}
	catalog, err := db.Open([]string{raw}, o)
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

// mustExist returns the error for a file that is not there.
func mustExist(raw string) error {
	e, err := expr.Parse(raw)
	if err != nil || !e.Kind.OnDisk() {
		return err
	}
	if _, err := os.Stat(e.Path); errors.Is(err, os.ErrNotExist) {
		return &dberr.Error{Code: dberr.NoRepository, Message: "open failed (file not found)", Err: err}
	}
	return nil
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
