package timed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/internal/vfs"
	"gotycoon/tools/show"
)

// compact writes a database file anew without the space in it that holds nothing. What the file says of itself stays as it is,
// so the file of a server that has crashed still is brought up to date from its log.
func compact(ctx context.Context, c *call) error {
	if err := c.parse(1, 1); err != nil {
		return err
	}
	path, err := c.filePath(c.args[0])
	if err != nil {
		return err
	}
	f, err := rebuild.Open(path, true, c.tryLock)
	if err != nil {
		return c.openFailed(inUse(err))
	}
	defer f.Close() //nolint:errcheck // only read
	if err := c.rewrite(ctx, f, path, vfs.OS{}); err != nil {
		return c.failed("DB::compact", c.args[0], err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "before: %d\nafter: %d\n", f.Size(), info.Size())
	return nil
}

var errDisagrees = errors.New("the records of the file are not those that it says it has")

// rewrite puts a file with the same records in the place of one.
func (c *call) rewrite(ctx context.Context, f *rebuild.File, path string, fs vfs.FS) error {
	m := f.Meta()
	b, err := rebuild.New(path, rebuild.Options{Replace: true, FS: fs})
	if err != nil {
		return err
	}
	defer b.Discard() //nolint:errcheck // after an error that is returned
	done := c.quietProgress("records", m.Bytes)
	var count, size int64
	var sum uint64
	err = f.Records(func(key, value []byte) error {
		count++
		size += int64(len(key) + len(value))
		sum += filestore.RecordSum(key, value)
		done(1, len(key)+len(value))
		if count%lookEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return b.Append(key, value)
	})
	done(0, 0)
	if err == nil && (count != m.Count || size != m.Bytes || m.Summed && sum != m.Sum) {
		err = fmt.Errorf("%w: it has %d records with %d bytes and the checksum %016x, and says that it has %d with %d and %016x",
			errDisagrees, count, size, sum, m.Count, m.Bytes, m.Sum)
	}
	if _, damaged := errors.AsType[*rebuild.Damage](err); damaged || errors.Is(err, errDisagrees) {
		return fmt.Errorf("%w: see what verify says; repair saves what can be read", err)
	}
	if err != nil {
		return err
	}
	if err := f.Versions(b.Remember); err != nil {
		return fmt.Errorf("%w: see what verify says; repair saves what can be read", err)
	}
	return b.Commit(m)
}

// filePath returns the file of an expression, which must exist.
func (c *call) filePath(raw string) (string, error) {
	if err := mustExist(raw); err != nil {
		return "", c.openFailed(err)
	}
	e, err := expr.Parse(raw)
	if err == nil && !e.Kind.OnDisk() {
		err = &dberr.Error{Code: dberr.InvalidOperation, Message: "the database is in memory"}
	}
	if err != nil {
		return "", c.openFailed(err)
	}
	return filepath.EvalSymlinks(e.Path)
}

// inUse gives the error for a file that a server has open its code.
func inUse(err error) error {
	if errors.Is(err, filestore.ErrInUse) {
		return &dberr.Error{Code: dberr.NoRepository, Message: err.Error(), Err: err}
	}
	return err
}

// quietProgress returns what shows progress to a person, and nothing to anybody else: 0 items end it.
func (c *call) quietProgress(items string, size int64) func(items, bytes int) {
	if !show.IsTerminal(c.stdout) || !show.IsTerminal(c.stderr) {
		return func(int, int) {}
	}
	p := show.NewProgress(c.out, c.stdout, c.stderr, show.ProgressOptions{Items: items, Size: size})
	return func(items, bytes int) {
		if items == 0 {
			p.End()
			return
		}
		p.Done(items, bytes)
	}
}
