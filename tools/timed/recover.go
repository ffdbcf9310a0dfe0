package timed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/internal/vfs"
	"gotycoon/tools/show"
	"gotycoon/ulog"
)

// recovery brings the updates of a log into a database file. The file is built anew beside its name and renamed into place: whatever
// happens, the old one or the new one is there.
type recovery struct {
	*call
	fs     vfs.FS
	path   string
	noXT   bool         // the expression says ktopts=p
	dir    string       // of the log
	logID  filestore.ID // zero: a log that no server of ours has opened
	file   *rebuild.File
	fresh  *rebuild.Builder
	relog  *ulog.Log // -ulog; nil: none
	source *ulog.Reader

	given   bool       // -ts is given
	after   ulog.Stamp // updates up to here are in the file
	until   ulog.Stamp // updates behind this one are left out
	partial bool       // --until is given
	own     bool       // the file belongs to the log: it knows itself where it ends
	allSIDs bool       // no server's updates are left out

	result
}

// result is what a recovery has come across.
type result struct {
	read    int64 // updates looked at, those of other databases included
	applied int64
	skipped int64             // for their server ID
	last    ulog.Stamp        // of those read
	cleared filestore.Version // of the last clear among those applied
	damage  error             // that ended the log early
	refused error             // the last update that could not be applied, told at the end

	untold, untoldBytes int // updates that progress has not been told of
}

// recoverLog brings the updates of a log into a database.
func recoverLog(ctx context.Context, c *call) error {
	r := &recovery{call: c, fs: vfs.OS{}, until: math.MaxUint64}
	if err := r.options(); err != nil {
		return err
	}
	err := r.run(ctx)
	return firstError(err, r.close())
}

func (r *recovery) options() error {
	ts := r.flags.String("ts", "", "leave out what is not later than this time `stamp`, or \"now\" (default: where the file ends, if it belongs to the log)")
	until := r.flags.String("until", "", "leave out what is later than this `time` stamp, or time like 2026-11-21T10:00:00.5Z; a server then "+
		"starts with the file as it is")
	if err := r.parse(2, 2); err != nil {
		return err
	}
	r.dir = r.args[1]
	var err error
	if r.given = r.flags.Changed("ts"); r.given {
		if r.after, err = parseStart(*ts); err != nil {
			return usageError("-ts: " + err.Error())
		}
	}
	if r.partial = r.flags.Changed("until"); r.partial {
		if r.until, err = parseMoment(*until); err != nil {
			return usageError("-until: " + err.Error())
		}
	}
	return nil
}

func (r *recovery) run(ctx context.Context) error {
	if err := r.open(); err != nil {
		return err
	}
	if err := r.place(); err != nil {
		return err
	}
	if err := r.openLogs(); err != nil {
		return err
	}
	progress := show.NewProgress(r.out, r.stdout, r.stderr, show.ProgressOptions{Items: "updates", Size: -1})
	err := r.apply(ctx, progress)
	r.tellProgress(progress)
	progress.End()
	if err == nil && (r.read > 0 || r.partial) {
		err = r.commit()
	}
	if err != nil {
		return r.failed("DB::recover", r.args[0], err)
	}
	r.tell()
	return firstError(r.refused, r.damage)
}

// open opens the file. One that belongs to another log is first brought up to date from that, and closed.
func (r *recovery) open() error {
	if err := mustExist(r.args[0]); err != nil {
		return r.openFailed(err)
	}
	e, err := expr.Parse(r.args[0])
	if err == nil {
		err = recoverable(e)
	}
	if err != nil {
		return r.openFailed(err)
	}
	r.noXT = e.Params.Persistent
	if r.path, err = filepath.EvalSymlinks(e.Path); err != nil {
		return r.openFailed(err)
	}
	if err := r.identify(); err != nil {
		return err
	}
	if err := r.openFile(); err != nil {
		return err
	}
	m := r.file.Meta()
	if r.belongs(m) || m.Clean && m.Merging == nil {
		return nil
	}
	return r.catchUp()
}

// recoverable returns why the records of a log cannot be brought into a database.
func recoverable(e expr.Expr) error {
	switch {
	case !e.Kind.OnDisk():
		return &dberr.Error{Code: dberr.InvalidOperation, Message: "nothing remains of a database in memory"}
	case e.Kind == expr.Text, e.Params.RComp == expr.Decimal, e.Params.RComp == expr.DecimalDesc:
		return &dberr.Error{Code: dberr.NotImplemented, Message: "text databases and those in decimal order cannot be recovered into: " +
			"recover into another kind, and merge that"}
	}
	return nil
}

// identify finds out which log the directory holds.
func (r *recovery) identify() error {
	if _, err := r.fs.ReadDir(r.dir); err != nil {
		return fmt.Errorf("UpdateLogger::open failed: %s: %w", r.args[0], err)
	}
	id, err := ulog.Identity(r.fs, r.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("UpdateLogger::open failed: %s: %w", r.args[0], err)
	}
	r.logID = id
	return nil
}

func (r *recovery) openFile() (err error) {
	r.file, err = rebuild.Open(r.path, true, r.tryLock)
	if errors.Is(err, filestore.ErrInUse) {
		err = &dberr.Error{Code: dberr.NoRepository, Message: err.Error(), Err: err}
	}
	if err != nil {
		return r.openFailed(err)
	}
	return nil
}

func (r *recovery) belongs(m filestore.Meta) bool {
	return r.logID != filestore.ID{} && m.LogID == r.logID
}

// catchUp brings a file up to date that a server of another log has not closed.
func (r *recovery) catchUp() error {
	if err := r.file.Close(); err != nil {
		return err
	}
	r.file = nil
	_, err := r.call.open(r.args[0], writes, func(o *db.Options) {
		o.LogDir = ""
		if r.ulog != "" {
			o.Offline.Logs = append(o.Offline.Logs, r.ulog)
		}
	})
	if err := firstError(err, r.closeAll()); err != nil {
		return err
	}
	return r.openFile()
}

// openLogs opens the log that is read, the one that is written, and the new file.
func (r *recovery) openLogs() (err error) {
	warn := warnings{r.stderr}
	r.source, err = ulog.OpenReader(r.fs, r.dir, r.after, ulog.ReaderOptions{Report: func(err error) { warn.print(err) }})
	if err != nil {
		return fmt.Errorf("UpdateLogger::open failed: %s: %w", r.args[0], err)
	}
	if r.ulog != "" {
		if same(r.ulog, r.dir) {
			return usageError("-ulog: the log that is read cannot be the one that is written")
		}
		r.relog, err = ulog.Open(r.ulog, ulog.Options{Limit: *r.ulim, NoRepair: r.noRepair, FS: r.fs})
		if err != nil {
			return fmt.Errorf("UpdateLogger::open failed: %s: %w", r.ulog, err)
		}
	}
	r.fresh, err = rebuild.New(r.path, rebuild.Options{Replace: true, FS: r.fs})
	if err != nil {
		return r.failed("DB::recover", r.args[0], err)
	}
	r.fresh.Over(r.file)
	if err := r.file.Versions(r.fresh.Remember); err != nil {
		return r.failed("DB::recover", r.args[0], err)
	}
	return nil
}

// same tells whether two names lead to one directory.
func same(a, b string) bool {
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

// close gives everything back. What has not been committed is gone.
func (r *recovery) close() error {
	var err error
	if r.fresh != nil {
		err = r.fresh.Discard()
	}
	if r.source != nil {
		err = firstError(err, r.source.Close())
	}
	if r.relog != nil {
		err = firstError(err, r.relog.Close())
	}
	if r.file != nil {
		err = firstError(err, r.file.Close())
	}
	return err
}

// print prints an error that does not end the command.
func (w warnings) print(err error) { fmt.Fprintf(w.out, "%s: warning: %v\n", program, err) }
