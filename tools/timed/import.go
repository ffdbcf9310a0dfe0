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

// importRecords stores records from lines with a key and a value; a line with a key alone removes its record.
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

// input opens the file of an argument, or standard input where there is none. size is -1 where it is not known.
func (c *call) input(i int) (in io.ReadCloser, size int64, err error) {
	if i >= len(c.args) {
		return io.NopCloser(c.stdin), -1, nil
	}
	return show.OpenInput(c.args[i])
}

// inputName is the input as messages name it.
func (c *call) inputName(i int) string {
	if i >= len(c.args) {
		return "standard input"
	}
	return c.args[i]
}

// run reads lines of any length to the end. A line that a failure to read has cut off is left out: it would store a part
// of a value, or remove another record.
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

// line takes one line. Lines with more than two columns count, and change nothing.
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
