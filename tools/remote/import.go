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

// importer stores the records of a file, or of another server.
type importer struct {
	*call
	from     sourceOptions
	xt       client.Expiry // of records that have no expiration time of their own
	target   *client.DB
	wasEmpty bool // before the import
	store    storer
	progress show.Progress
	batch    batch
}

// importRecords reads lines, or with -from what other systems have written. A line with a key and a
// value stores a record, a line with a key alone removes its record.
func importRecords(ctx context.Context, c *call) error {
	c.withDB().withHex()
	im := &importer{call: c}
	binary := c.flags.Bool("bin", false, "use the binary protocol; the database must be a number (default with -from where that is possible)")
	xt := c.withExpiry()
	im.from.define(c.flags)
	if err := c.parse(0, 1); err != nil {
		return err
	}
	if *binary && !c.hasNumber() {
		return usageError("-bin: the database must be a number")
	}
	src, err := im.from.source(c)
	if err != nil {
		return err
	}
	db, err := c.openFor(ctx, *binary)
	if err != nil {
		return err
	}
	im.target, im.xt = db, expiry(*xt)
	im.store = &textStorer{db}
	if *binary || src != nil && c.hasNumber() && c.credentials() == (client.Credentials{}) {
		im.store = &binaryStorer{c.client, c.number()}
	}
	if src != nil {
		return im.runSource(ctx, src)
	}
	in, size, err := c.input()
	if err != nil {
		return err
	}
	defer in.Close()
	im.progress = c.progress(size)
	err = im.run(ctx, in)
	im.progress.End()
	return err
}

// runSource stores the records of another system. What the source has left out makes the run fail,
// because the import is not complete; what it has is stored nevertheless.
func (im *importer) runSource(ctx context.Context, src source) error {
	rows, err := im.target.Status(ctx)
	if err != nil {
		return im.failed("DB::status", err)
	}
	im.wasEmpty = rows.Int("count") == 0
	im.progress = im.call.progress(-1)
	err = src.read(ctx, im)
	err = errors.Join(err, im.send(ctx)) // also what came before an error
	im.progress.End()
	return errors.Join(err, im.out.Flush())
}

// progress returns the progress display of an import of size bytes.
func (c *call) progress(size int64) show.Progress {
	return show.NewProgress(c.out, c.stdout, c.stderr, show.ProgressOptions{Items: "records", Size: size})
}

// run reads lines of any length up to the end of the input. The lines read are sent as soon as they
// fill a request, and before run would have to wait for the next line: a program that writes line
// by line into a pipe sees each line stored at once.
//
// When reading fails in the middle of a line, the line is dropped. Its beginning could store a part
// of a value or remove another record.
func (im *importer) run(ctx context.Context, in io.Reader) error {
	r := bufio.NewReaderSize(in, importBuffer)
	for {
		line, err := r.ReadBytes('\n')
		if complete := err == nil || errors.Is(err, io.EOF); complete && len(line) > 0 {
			if err := im.line(ctx, line); err != nil {
				return err
			}
		}
		if err != nil || !lineBuffered(r) {
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

// lineBuffered reports whether the next line can be read without waiting.
func lineBuffered(r *bufio.Reader) bool {
	b, _ := r.Peek(r.Buffered()) // buffered bytes are always there
	return bytes.IndexByte(b, '\n') >= 0
}

// line adds one line to the batch. Carriage returns and NUL bytes are dropped. A line with more
// than two columns is counted, and changes nothing.
func (im *importer) line(ctx context.Context, line []byte) error {
	columns := show.Columns(line, im.hexIn)
	if len(columns) > 2 {
		im.batch.count(len(line))
		return nil
	}
	ch := change{key: string(columns[0]), removed: len(columns) == 1, xt: im.xt}
	if !ch.removed {
		ch.value = columns[1]
	}
	return im.put(ctx, ch, len(line))
}

// put adds a change to the batch, and sends the batch when it is full. A large record must not make
// the server refuse the whole request for its size, so what has gathered is sent before it.
func (im *importer) put(ctx context.Context, ch change, size int) error {
	if im.batch.bytes+size > batchBytes {
		if err := im.send(ctx); err != nil {
			return err
		}
	}
	im.batch.add(ch, size)
	if im.batch.full() {
		return im.send(ctx)
	}
	return nil
}

// lookup returns what the key will have when the batch is sent.
func (im *importer) lookup(ctx context.Context, key string) (ch change, found bool, err error) {
	if i, ok := im.batch.index[key]; ok {
		ch = im.batch.changes[i]
		return ch, !ch.removed, nil
	}
	r, err := im.target.GetRecord(ctx, key)
	if errors.Is(err, client.ErrNoRecord) {
		return ch, false, nil
	}
	return change{key: key, value: r.Value, xt: client.At(r.Expires)}, true, im.failed("DB::get", err)
}

// clear removes everything that was stored. What the database had before would go, too.
func (im *importer) clear(ctx context.Context) error {
	if !im.wasEmpty {
		return errors.New("redis has removed all its keys at some time, but this database was not empty before the import: import into an empty one")
	}
	im.batch = batch{}
	return im.failed("DB::clear", im.target.Clear(ctx))
}

func (im *importer) never() client.Expiry { return im.xt }

// note prints a line for people.
func (im *importer) note(format string, args ...any) {
	fmt.Fprintf(im.stderr, "%s: %s\n", program, fmt.Sprintf(format, args...))
}

// send sends the batch. Its items count as done once the server has answered, even with an error.
func (im *importer) send(ctx context.Context) error {
	if im.batch.items == 0 {
		return nil
	}
	name, err := im.store.send(ctx, &im.batch)
	if !errors.Is(err, client.ErrNetwork) {
		im.progress.Done(im.batch.items, im.batch.bytes)
	}
	im.batch = batch{}
	if err == nil {
		err = im.out.Flush()
	}
	return im.failed(name, err)
}
