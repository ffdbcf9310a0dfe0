package timed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/tools/show"
)

// create creates a database file. An existing file is opened, or emptied with -otr.
func create(_ context.Context, c *call) error {
	truncate := c.truncates()
	if err := c.parse(1, 1); err != nil {
		return err
	}
	_, err := c.openFresh(c.args[0], *truncate)
	return err
}

// inform prints the number and the size of the records, or with -st the whole status of a database.
func inform(_ context.Context, c *call) error {
	all := c.withJSON().flags.Bool("st", false, "print everything about the database")
	d, err := c.parseAndOpen(1, 1, reads)
	if err != nil {
		return err
	}
	rows, err := d.Status(nil)
	if err != nil {
		return c.failed("DB::status", c.args[0], err)
	}
	if !*all {
		maps.DeleteFunc(rows, func(name, _ string) bool { return name != "count" && name != "size" })
	}
	return c.printRows(rows)
}

// clearRecords removes all records.
func clearRecords(_ context.Context, c *call) error {
	d, err := c.parseAndOpen(1, 1, writes)
	if err != nil {
		return err
	}
	return c.failed("DB::clear", c.args[0], d.Clear(nil))
}

// vacuum removes expired records.
func vacuum(_ context.Context, c *call) error {
	d, err := c.parseAndOpen(1, 1, writes)
	if err != nil {
		return err
	}
	return c.failed("DB::vacuum", c.args[0], d.Vacuum(nil, 0))
}

// check reads every record twice, in the order of the database and by its key, and compares the
// two.
func check(_ context.Context, c *call) error {
	d, err := c.parseAndOpen(1, 1, reads)
	if err != nil {
		return err
	}
	p, n := c.steps(-1), 0
	err = d.Stored(func(key, stored []byte) error {
		xt, value, live := d.SplitStored(stored)
		if !live {
			return nil
		}
		if err := c.checkOne(d, key, value, xt); err != nil {
			return err
		}
		n++
		p.Done(1, len(key)+len(stored))
		return nil
	})
	p.End()
	if err != nil {
		return c.failed("DB::check", c.args[0], err)
	}
	_, err = fmt.Fprintf(c.out, "%d records were checked successfully\n", n)
	return err
}

func (c *call) checkOne(d *db.DB, key, value []byte, xt int64) error {
	found, at, err := d.Get(nil, nil, key)
	switch {
	case errors.Is(err, dberr.ErrNoRecord) && !d.Info().Persistent && record.Expired(xt, d.Now().Unix()):
		return nil // expired since it was listed
	case err != nil:
		return fmt.Errorf("get %q: %w", key, err)
	case at != xt || !bytes.Equal(found, value):
		return &dberr.Error{Code: dberr.BrokenFile, Message: fmt.Sprintf("the record of %q has another value when it is read by its key", key)}
	}
	return nil
}

// copyFile makes a copy of a database file.
func copyFile(_ context.Context, c *call) error {
	d, err := c.parseAndOpen(2, 2, reads)
	if err != nil {
		return err
	}
	p := &blocks{Progress: show.NewProgress(c.out, c.stdout, c.stderr,
		show.ProgressOptions{Items: "blocks", Size: d.Size(), Every: 100, Ending: " (end)"})}
	size, err := d.CopyFile(c.args[1], p.add)
	p.add(-int(size) % blockSize & (blockSize - 1)) // the last block is not full
	p.End()
	if err != nil {
		return c.failed("DB::copy", c.args[0], err)
	}
	_, err = fmt.Fprintf(c.out, "%d blocks were merged successfully\n", (size+blockSize-1)/blockSize)
	return err
}

// blockSize is the unit in which copy shows progress.
const blockSize = 8192

// blocks converts bytes into blocks for a progress display.
type blocks struct {
	show.Progress
	bytes int
}

func (b *blocks) add(bytes int) {
	before := b.bytes / blockSize
	b.bytes += bytes
	b.Done(b.bytes/blockSize-before, bytes)
}
