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

// input opens the file, or standard input. size is -1 where it is not known.
func (c *call) input() (in io.ReadCloser, size int64, err error) {
	if c.flags.NArg() == 0 {
		return io.NopCloser(c.stdin), -1, nil
	}
	return show.OpenInput(c.flags.Arg(0)) // not from args: a file's name is never hexadecimal
}

// inputName is the input as messages name it.
func (c *call) inputName() string {
	if c.flags.NArg() == 0 {
		return "standard input"
	}
	return c.flags.Arg(0)
}

// progress shows how far an import of size bytes is.
func (c *call) progress(size int64) show.Progress {
	return show.NewProgress(c.out, c.stdout, c.stderr, show.ProgressOptions{Items: "records", Size: size})
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

// Where a batch is enough for one request.
const (
	batchRecords = 2000
	batchBytes   = 1 << 20
)

// batch is lines that go to the server together. Each key is in it once.
type batch struct {
	sets    []client.Record
	removes []string
	keys    map[string]struct{}
	lines   int // with those that do nothing
	bytes   int // of those lines
}

func (b *batch) has(key string) bool {
	_, ok := b.keys[key]
	return ok
}

// add adds a record to be stored, or without a value to be removed.
func (b *batch) add(key string, value [][]byte) {
	if b.keys == nil {
		b.keys = map[string]struct{}{}
	}
	b.keys[key] = struct{}{}
	if len(value) == 0 {
		b.removes = append(b.removes, key)
		return
	}
	b.sets = append(b.sets, client.Record{Key: key, Value: value[0]})
}

func (b *batch) full() bool { return b.lines >= batchRecords || b.bytes >= batchBytes }

// storer is a way to the server. send returns the original's name of the call that failed.
type storer interface {
	send(ctx context.Context, b *batch) (name string, err error)
}

const (
	nameSet    = "DB::set"
	nameRemove = "DB::remove"
)

// textStorer uses TSV-RPC.
type textStorer struct {
	db *client.DB
	xt client.XT
}

func (s *textStorer) send(ctx context.Context, b *batch) (name string, err error) {
	if len(b.sets) > 0 {
		records := make(map[string][]byte, len(b.sets))
		for _, r := range b.sets {
			records[r.Key] = r.Value
		}
		if _, err := s.db.SetBulk(ctx, records, s.xt, false); err != nil {
			return nameSet, err
		}
	}
	if len(b.removes) > 0 {
		_, err = s.db.RemoveBulk(ctx, b.removes, false)
	}
	return nameRemove, err
}

// binaryStorer uses the binary protocol.
type binaryStorer struct {
	client *client.Client
	db     uint16
	xt     client.XT
}

func (s *binaryStorer) send(ctx context.Context, b *batch) (name string, err error) {
	if len(b.sets) > 0 {
		records := make([]client.BinaryRecord, len(b.sets))
		for i, r := range b.sets {
			records[i] = client.BinaryRecord{DB: s.db, Key: r.Key, Value: r.Value, XT: s.xt}
		}
		n, err := s.client.SetBinary(ctx, records)
		if err == nil && n < len(records) { // the protocol passes over a database that does not exist
			err = &client.Error{Code: client.Invalid, Message: "no such database"}
		}
		if err != nil {
			return nameSet, err
		}
	}
	if len(b.removes) > 0 {
		_, err = s.client.RemoveBinary(ctx, s.db, b.removes)
	}
	return nameRemove, err
}
