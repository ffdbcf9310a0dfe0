package timed

import (
	"context"
	"errors"
	"fmt"
	"os"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/internal/vfs"
)

// compact rewrites a database file without unused space and without runs. What the file says of its
// place in a log stays unchanged, so the file of a crashed server is still brought up to date from
// its log.
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
	defer f.Close() // only read
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

// rewrite replaces a file by a new file with the same records. It refuses a file whose records do
// not match the number, size and checksum in its description.
func (c *call) rewrite(ctx context.Context, f *rebuild.File, path string, fs vfs.FS) error {
	m := f.Meta()
	b, err := rebuild.New(path, rebuild.Options{Replace: true, FS: fs})
	if err != nil {
		return err
	}
	defer b.Discard() // after an error that is returned
	done := c.quietProgress("records", f.About())
	var count int64
	err = f.Records(func(key, value []byte) error {
		count++
		done(1, len(key)+len(value))
		if count%lookEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return b.Append(key, value)
	})
	done(0, 0)
	if t := f.Bottom(); err == nil && (t.Count != m.Count || t.Bytes != m.Bytes || m.Summed && t.Sum != m.Sum) {
		err = fmt.Errorf("%w: it has %d records with %d bytes and the checksum %016x, and says that it has %d with %d and %016x",
			errDisagrees, t.Count, t.Bytes, t.Sum, m.Count, m.Bytes, m.Sum)
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

// repair saves the readable records of a damaged file into a new file. It never changes the damaged
// file.
func repair(ctx context.Context, c *call) error {
	if err := c.parse(2, 2); err != nil {
		return err
	}
	path, err := c.filePath(c.args[0])
	if err != nil {
		return err
	}
	e, err := expr.Parse(c.args[1])
	if err == nil && !e.Kind.OnDisk() {
		err = &dberr.Error{Code: dberr.InvalidOperation, Message: "nothing remains of a database in memory"}
	}
	if err != nil {
		return c.openFailed(err)
	}
	b, err := rebuild.New(e.Path, rebuild.Options{})
	if err != nil {
		return c.failed("DB::repair", c.args[1], err)
	}
	defer b.Discard() // after an error that is returned
	s, err := c.salvage(ctx, path, b)
	if err == nil {
		err = save(s, b, e.Params.Persistent)
	}
	if err != nil {
		return c.failed("DB::repair", c.args[0], inUse(err))
	}
	return c.saved(path, s, b)
}

// Errors with which a repair ends that has not saved everything for certain.
var (
	// errLost: some records could not be saved.
	errLost = errors.New("not everything could be saved")
	// errUncertain: it is not certain that the saved records are the written ones.
	errUncertain = errors.New("what was saved may differ from what was written: bring in the update log with recover, or compare it with a backup")
)

func (c *call) salvage(ctx context.Context, path string, b *rebuild.Builder) (*rebuild.Salvaged, error) {
	done := c.quietProgress("pages", -1)
	defer done(0, 0)
	return rebuild.Salvage(path, c.tryLock, &sink{Builder: b, ctx: ctx}, func(pages int) { done(pages, 0) })
}

// A sink takes what is saved until the command is to end.
type sink struct {
	*rebuild.Builder
	ctx   context.Context
	count int64
}

// Set stores a record.
func (s *sink) Set(key, value []byte) error {
	if s.count++; s.count%lookEvery == 0 && s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	return s.Builder.Set(key, value)
}

// save completes the new file. The new file takes over the damaged file's description, so that a
// server brings in the updates that are only in the file's log.
func save(s *rebuild.Salvaged, b *rebuild.Builder, persistent bool) error {
	m := s.Meta
	if m.Format == 0 {
		if s.Records == 0 {
			return errors.New("nothing in it can be read")
		}
		m = filestore.Meta{ID: filestore.NewID(), Clean: true, Persistent: persistent}
	}
	if m.LWW {
		// Some versions may be lost. For their keys the next update wins, whatever its version.
		m.Base = filestore.Oldest
	}
	return b.Commit(m)
}

// saved reports what was saved and what was lost. It returns an error unless the saved records are
// known to be the written ones.
func (c *call) saved(path string, s *rebuild.Salvaged, b *rebuild.Builder) error {
	count := b.Count()
	for _, l := range s.Lost {
		line := l.Error()
		if l.Keys != "" {
			line += "; missing may be keys from " + l.Keys
		}
		if l.Newer != "" {
			line += "; older than they should be, or missing, may be keys from " + l.Newer
		}
		fmt.Fprintf(c.stderr, "%s: %s: %s\n", program, path, line)
	}
	if more := s.Found - len(s.Lost); more > 0 {
		fmt.Fprintf(c.stderr, "%s: %s: and %d more\n", program, path, more)
	}
	fmt.Fprintf(c.out, "records saved: %d\n", count)
	known := s.Meta.Format != 0
	if known {
		c.tellSource(s)
	}
	if s.Orphans > 0 {
		fmt.Fprintf(c.out, "records from pages that nothing led to: %d\n", s.Orphans)
	}
	if s.RunsHurt && s.PassedOver > 0 {
		fmt.Fprintf(c.out, "pages with newer records that were passed over, because their order is not known: %d\n", s.PassedOver)
	}
	if s.Doubtful > 0 {
		fmt.Fprintf(c.out, "records that may be out of date: %d\n", s.Doubtful)
	}
	if s.Stale {
		fmt.Fprintf(c.out, "the newest state of the file cannot be read: these are the records of one before\n")
	}
	tree := rebuild.Sums{Count: count, Sum: b.Sum()}
	if s.Runs > 0 || s.RunsHurt {
		tree = s.Tree // the new file has what the runs have, too
	}
	certain := known && s.Meta.Summed && tree.Sum == s.Meta.Sum && tree.Count == s.Meta.Count && !s.RunsHurt
	if !certain {
		c.tellUncertain(s, count)
	}
	c.tellLog(path, s.Meta)
	switch {
	case !known || s.Doubtful > 0 || s.Stale || s.RunsHurt || tree.Count != s.Meta.Count:
		return errLost
	case !certain:
		return errUncertain
	}
	return nil
}

// tellSource says what the file claims to have. A file with runs knows only about the records below
// them.
func (c *call) tellSource(s *rebuild.Salvaged) {
	if s.Runs == 0 && s.Entries == 0 {
		fmt.Fprintf(c.out, "records in the file, as it says: %d\n", s.Meta.Count)
		return
	}
	fmt.Fprintf(c.out, "records below the runs of the file, as it says: %d\n", s.Meta.Count)
	fmt.Fprintf(c.out, "updates in the runs of the file: %d\n", s.Entries)
}

// tellUncertain explains why the saved records may differ from the written ones. Pages have no
// checksums, and a damaged byte within a value is not noticed otherwise; only the checksum of all
// records could tell.
func (c *call) tellUncertain(s *rebuild.Salvaged, count int64) {
	why := "the checksum of the records in the file does not match"
	switch {
	case s.Meta.Format == 0:
		why = "nothing that the file says of itself can be read"
	case s.RunsHurt:
		why = "a part of the newer records cannot be read, so that older ones may have taken their place"
	case !s.Meta.Summed:
		why = "the file has no checksum of its records; \"" + program + " compact\" adds one to a sound file"
	}
	fmt.Fprintf(c.out, "records whose contents cannot be verified: %d (%s)\n", count, why)
}

// tellLog says where to find updates that are not in the file.
func (c *call) tellLog(path string, m filestore.Meta) {
	wal := path + privateSuffix
	if _, err := os.Stat(wal); err == nil {
		fmt.Fprintf(c.stderr, "%s: newer updates may be in %s: \"%[1]s recover %s %[2]s\" brings them in\n", program, wal, c.args[1])
	} else if m.Format != 0 && !m.Clean {
		fmt.Fprintf(c.stderr, "%s: newer updates may be in the update log %s: a server with that log brings them in\n", program, m.LogDir)
	} else if m.Format == 0 {
		fmt.Fprintf(c.stderr, "%s: which update log the file belonged to is not known any more: a server takes the new file as it is\n", program)
	}
}
