package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"gotycoon/client"
	"gotycoon/tools/show"
)

// importer stores the lines of a file.
type importer struct {
	*call
	store    storer
	progress show.Progress
	batch    batch
}

const importBuffer = 256 << 10

// importRecords stores records from lines with a key and a value; a line with a key alone removes its record.
func importRecords(ctx context.Context, c *call) error {
	c.withDB().withHex()
	binary := c.flags.Bool("bin", false, "use the binary protocol; the database must be a number")
	xt := c.withExpiry()
	if err := c.parse(0, 1); err != nil {
		return err
	}
	if *binary && !c.hasNumber() {
		return usageError("-bin: the database must be a number")
	}
	in, size, err := c.input()
	if err != nil {
		return err
	}
	defer in.Close()
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	im := &importer{call: c, progress: c.progress(size)}
	im.store = &textStorer{db: db, xt: client.XT(*xt)}
	if *binary {
		im.store = &binaryStorer{client: c.client, db: c.number(), xt: client.XT(*xt)}
	}
	err = im.run(ctx, in)
	im.progress.End()
	return err
}

// run reads lines of any length to the end. What has been read is sent when it is enough for one request, and before the
// next line has to be waited for: whoever writes into a pipe line by line sees each line stored. A line that a failure to
// read has cut off is left out: it would store a part of a value, or remove another record.
func (im *importer) run(ctx context.Context, in io.Reader) error {
	r := bufio.NewReaderSize(in, importBuffer)
	for {
		line, err := r.ReadBytes('\n')
		if complete := err == nil || errors.Is(err, io.EOF); complete && len(line) > 0 {
			if err := im.line(ctx, line); err != nil {
				return err
			}
		}
		if err != nil || im.batch.full() || !lineBuffered(r) {
			if err := im.send(ctx); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", im.inputName(), err)
		}
	}
}

// lineBuffered tells whether the next line can be read without waiting.
func lineBuffered(r *bufio.Reader) bool {
	b, _ := r.Peek(r.Buffered()) // they are there
	return bytes.IndexByte(b, '\n') >= 0
}

// line takes one line: carriage returns and NUL bytes are dropped, lines with more than two columns are left out.
func (im *importer) line(ctx context.Context, line []byte) error {
	size := len(line)
	columns := show.Columns(line, im.hexIn)
	if key := string(columns[0]); len(columns) <= 2 {
		if im.batch.has(key) || im.batch.bytes+size > batchBytes { // lines of a key must not be mixed up, nor refused for a large one
			if err := im.send(ctx); err != nil {
				return err
			}
		}
		im.batch.add(key, columns[1:])
	}
	im.batch.lines++
	im.batch.bytes += size
	return nil
}

// send sends the batch. Its lines count as done once the server has answered, whatever it says.
func (im *importer) send(ctx context.Context) error {
	if im.batch.lines == 0 {
		return nil
	}
	name, err := im.store.send(ctx, &im.batch)
	if !errors.Is(err, client.ErrNetwork) {
		im.progress.Done(im.batch.lines, im.batch.bytes)
	}
	im.batch = batch{}
	if err == nil {
		err = im.out.Flush()
	}
	return im.failed(name, err)
}
