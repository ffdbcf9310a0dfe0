package timed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/internal/vfs"
	"gotycoon/snapshot"
	"gotycoon/tools/show"
	"gotycoon/ulog"
)

// dump writes all records to a snapshot that the original can load. Expired records are included.
func dump(_ context.Context, c *call) error {
	d, err := c.parseAndOpen(1, 2, reads)
	if err != nil {
		return err
	}
	if len(c.args) == 1 {
		_, err := c.dumpTo(c.out, d, nil)
		return c.failed("DB::dump_snapshot", c.args[0], err)
	}
	p := c.steps(-1)
	n, err := c.dumpToFile(c.args[1], d, p)
	p.End()
	if err != nil {
		return c.failed("DB::dump_snapshot", c.args[0], err)
	}
	_, err = fmt.Fprintf(c.out, "%d records were dumped successfully\n", n)
	return err
}

// dumpToFile writes a new file and renames it, so that an existing snapshot stays until the new one
// is complete.
func (c *call) dumpToFile(path string, d *db.DB, p show.Progress) (n int64, err error) {
	fresh := path + ".new"
	f, err := os.Create(fresh)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, outBuffer)
	n, err = c.dumpTo(w, d, p)
	err = firstError(err, w.Flush())
	err = firstError(err, f.Sync())
	err = firstError(err, f.Close())
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(fresh))
	}
	return n, vfs.OS{}.SyncDir(filepath.Dir(path))
}

// dumpTo writes the records. p may be nil.
func (c *call) dumpTo(w io.Writer, d *db.DB, p show.Progress) (n int64, err error) {
	out, err := snapshot.NewDumpWriter(w)
	if err != nil {
		return 0, err
	}
	err = d.Stored(func(key, stored []byte) error {
		n++
		if p != nil {
			p.Done(1, len(key)+len(stored))
		}
		return out.Add(key, stored)
	})
	return n, firstError(err, out.Close())
}

// loader is one run of load: it stores the records of a snapshot.
type loader struct {
	*call
	db       *db.DB
	progress show.Progress
	pending  db.Pending
	batch    []ulog.Update
	bytes    int
	n        int64
}

// load stores the records of a dump or of a server's snapshot. Other records of the database stay.
func load(_ context.Context, c *call) error {
	truncate := c.truncates()
	if err := c.parse(1, 2); err != nil {
		return err
	}
	in, size, err := c.input(1)
	if err != nil {
		return err
	}
	defer in.Close()
	records, err := snapshot.NewReader(in) // before the file is emptied
	if err != nil {
		return fmt.Errorf("%s: %w", c.inputName(1), err)
	}
	d, err := c.openFresh(c.args[0], *truncate)
	if err != nil {
		return err
	}
	l := &loader{call: c, db: d, progress: c.steps(size)}
	err = firstError(l.all(records), l.flush())
	l.progress.End()
	if err = firstError(err, l.pending.Wait()); err != nil {
		return c.failed("DB::load_snapshot", c.args[0], err)
	}
	_, err = fmt.Fprintf(c.out, "%d records were loaded successfully\n", l.n)
	return err
}

// Records are stored together in batches of so many records, or of about so many bytes.
const (
	loadRecords = 1000
	loadBytes   = 1 << 20
)

// all stores every record. When the snapshot is damaged, the records before the damage are stored.
func (l *loader) all(records *snapshot.Reader) error {
	for {
		key, stored, err := records.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if damage, ok := errors.AsType[*snapshot.DamageError](err); ok {
			return &dberr.Error{Code: dberr.BrokenFile, Message: fmt.Sprintf("after %d records: %v", records.Count(), damage), Err: err}
		}
		if err != nil {
			return err
		}
		if err := l.add(key, stored); err != nil {
			return err
		}
	}
}

// add adds a record to the batch. It copies key and stored, which the caller may overwrite.
func (l *loader) add(key, stored []byte) error {
	room := append(append(make([]byte, 0, len(key)+len(stored)), key...), stored...)
	l.batch = append(l.batch, ulog.Update{SID: uint16(*l.sid), Op: ulog.OpSet, Key: room[:len(key):len(key)], Value: room[len(key):]})
	l.bytes += len(room)
	if len(l.batch) < loadRecords && l.bytes < loadBytes {
		return nil
	}
	return l.flush()
}

// flush stores the batch.
func (l *loader) flush() error {
	if len(l.batch) == 0 {
		return nil
	}
	if err := l.db.Replicate(&l.pending, l.batch, nil, nil); err != nil {
		return err
	}
	l.n += int64(len(l.batch))
	l.progress.Done(len(l.batch), l.bytes)
	l.batch, l.bytes = l.batch[:0], 0
	return nil
}
