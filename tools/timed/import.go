package timed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/tools/show"
)

const importBuffer = 256 << 10

// importer stores the lines of a file.
type importer struct {
	*call
	db       *db.DB
	xt       record.XT
	pending  db.Pending
	progress show.Progress
}

// importRecords reads lines. A line with a key and a value stores a record, a line with a key alone
// removes its record.
func importRecords(_ context.Context, c *call) error {
	xt := c.withHex().withExpiry()
	if err := c.parse(1, 2); err != nil {
		return err
	}
	in, size, err := c.input(1)
	if err != nil {
		return err
	}
	defer in.Close()
	d, err := c.open(c.args[0], creates)
	if err != nil {
		return err
	}
	im := &importer{call: c, db: d, xt: record.XT(*xt)}
	im.progress = show.NewProgress(c.out, c.stdout, c.stderr, show.ProgressOptions{Items: "records", Size: size})
	err = im.run(in)
	im.progress.End()
	if waitErr := im.pending.Wait(); err == nil {
		err = c.failed("DB::set", c.args[0], waitErr)
	}
	return err
}

// run reads lines of any length up to the end of the input. When reading fails in the middle of a
// line, the line is dropped: its beginning could store a part of a value or remove another record.
func (im *importer) run(in io.Reader) error {
	r := bufio.NewReaderSize(in, importBuffer)
	for {
		line, err := r.ReadBytes('\n')
		if complete := err == nil || errors.Is(err, io.EOF); complete && len(line) > 0 {
			if err := im.line(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", im.inputName(1), err)
		}
	}
}

// line handles one line. A line with more than two columns is counted, and changes nothing.
func (im *importer) line(line []byte) error {
	size := len(line)
	switch columns := show.Columns(line, im.hexIn); len(columns) {
	case 1:
		err := im.db.Remove(&im.pending, columns[0])
		if err != nil && !errors.Is(err, dberr.ErrNoRecord) {
			return im.failed("DB::remove", im.args[0], err)
		}
	case 2:
		if err := im.db.Set(&im.pending, columns[0], columns[1], im.xt); err != nil {
			return im.failed("DB::set", im.args[0], err)
		}
	}
	im.progress.Done(1, size)
	return nil
}

// merger is one run of merge: it stores the records of other databases in one.
type merger struct {
	*call
	into     *db.DB
	store    func(p *db.Pending, key, value []byte, xt record.XT) error
	pending  db.Pending
	progress show.Progress
	n        int
}

// merge stores the records of other databases.
func merge(_ context.Context, c *call) error {
	add := c.flags.Bool("add", false, "only records that are not there")
	replace := c.flags.Bool("rep", false, "only records that are there")
	appended := c.flags.Bool("app", false, "values behind those that are there")
	if err := c.parse(2, -1); err != nil {
		return err
	}
	into, err := c.open(c.args[0], creates)
	if err != nil {
		return err
	}
	m := &merger{call: c, into: into, store: into.Set, progress: c.steps(-1)}
	switch {
	case *add:
		m.store = into.Add
	case *replace:
		m.store = into.Replace
	case *appended:
		m.store = into.Append
	}
	err = m.all(c.args[1:])
	m.progress.End()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "%d records were merged successfully\n", m.n)
	return err
}

func (m *merger) all(sources []string) error {
	for _, path := range sources {
		from, err := m.open(path, reads)
		if err != nil {
			return err
		}
		if err := from.Stored(func(key, stored []byte) error { return m.one(from, key, stored) }); err != nil {
			return m.failed("DB::merge", m.args[0], err)
		}
	}
	return m.failed("DB::merge", m.args[0], m.pending.Wait())
}

// one stores a record with its expiration time, unless it has expired.
func (m *merger) one(from *db.DB, key, stored []byte) error {
	at, value, live := from.SplitStored(stored)
	if !live {
		return nil
	}
	xt := record.Never
	if at != record.MaxXT {
		xt = record.XT(-at)
	}
	err := m.store(&m.pending, key, value, xt)
	if err != nil && !errors.Is(err, dberr.ErrDuplicate) && !errors.Is(err, dberr.ErrNoRecord) {
		return err
	}
	m.n++
	m.progress.Done(1, len(key)+len(stored))
	return nil
}
