package db

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/internal/vfs"
)

// CopyFile writes a copy of the database file to a path, in place of a file that is there. The copy has what a tool (Offline) has
// found in the log, is marked as cleanly closed, and is known to servers as a copy of this moment. progress is told how many bytes have been
// written and may be nil. A database in memory returns ErrNotImplemented.
func (d *DB) CopyFile(to string, progress func(bytes int)) (size int64, err error) {
	if d.file == nil {
		return 0, dberr.ErrNotImplemented
	}
	if same, err := sameFile(d.Path(), to); err != nil || same {
		return 0, &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf("%s is the database itself", to), Err: err}
	}
	fresh := to + ".new"
	size, err = d.writeCopy(fresh, progress)
	if err == nil {
		err = d.completeCopy(fresh)
	}
	if err == nil {
		err = os.Rename(fresh, to)
	}
	if err != nil {
		return 0, systemError(errors.Join(err, removeIfThere(fresh)))
	}
	return size, systemError(vfs.OS{}.SyncDir(filepath.Dir(to)))
}

func sameFile(a, b string) (bool, error) {
	inA, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	inB, err := os.Stat(b)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(inA, inB), err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (d *DB) writeCopy(to string, progress func(int)) (int64, error) {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return 0, err
	}
	size, err := d.file.CopyTo(&counted{f, progress})
	if err == nil {
		err = f.Sync()
	}
	return size, errors.Join(err, f.Close())
}

// counted tells how much is written.
type counted struct {
	io.Writer
	progress func(int)
}

// Write writes and tells.
func (w *counted) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if w.progress != nil {
		w.progress(n)
	}
	return n, err
}

// completeCopy brings in what the database itself has from its log only in memory, and closes the copy.
func (d *DB) completeCopy(path string) error {
	f, err := filestore.Open(path, filestore.Options{Logger: d.logger})
	if err != nil {
		return err
	}
	if d.ownLog == "" {
		return f.Abandon()
	}
	m := f.Meta()
	into := &DB{expr: d.expr, logger: d.logger, file: f, store: newOrdered(f, d.expr.Params.RComp)}
	if err = into.replayDir(vfs.OS{}, d.ownLog, m, true); err != nil { // this database was opened without them, too
		return errors.Join(err, f.Abandon())
	}
	return f.Close()
}
