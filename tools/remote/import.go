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

// importRecords reads lines. A line with a key and a value stores a record, a line with a key alone
// removes its record.
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
	im.store = &textStorer{db: db, expires: expiry(*xt)}
	if *binary {
		im.store = &binaryStorer{client: c.client, db: c.number(), expires: expiry(*xt)}
	}
	err = im.run(ctx, in)
	im.progress.End()
	return err
}

// input opens the file of the argument, or standard input. size is -1 where it is not known.
func (c *call) input() (in io.ReadCloser, size int64, err error) {
	if c.flags.NArg() == 0 {
		return io.NopCloser(c.stdin), -1, nil
	}
	return show.OpenInput(c.flags.Arg(0)) // not from args: a file's name is never hexadecimal
}

// inputName names the input in messages.
func (c *call) inputName() string {
	if c.flags.NArg() == 0 {
		return "standard input"
	}
	return c.flags.Arg(0)
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

// lineBuffered reports whether the next line can be read without waiting.
func lineBuffered(r *bufio.Reader) bool {
	b, _ := r.Peek(r.Buffered()) // buffered bytes are always there
	return bytes.IndexByte(b, '\n') >= 0
}

// line adds one line to the batch. Carriage returns and NUL bytes are dropped. A line with more
// than two columns is counted, and changes nothing.
func (im *importer) line(ctx context.Context, line []byte) error {
	size := len(line)
	columns := show.Columns(line, im.hexIn)
	if key := string(columns[0]); len(columns) <= 2 {
		// In a request all sets come before all removes, so it must have one line of a key only.
		// And a large line must not make the server refuse the whole request for its size.
		if im.batch.has(key) || im.batch.bytes+size > batchBytes {
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

// send sends the batch. Its lines count as done once the server has answered, even with an error.
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

// A batch with so many lines, or so many bytes, is sent.
const (
	batchRecords = 2000
	batchBytes   = 1 << 20
)

// batch is a number of lines that are sent in one request. Each key is in it once, so the order of
// its lines does not matter.
type batch struct {
	sets    []client.Record
	removes []string
	keys    map[string]struct{}
	lines   int // including lines that change nothing
	bytes   int // length of the lines
}

func (b *batch) has(key string) bool {
	_, ok := b.keys[key]
	return ok
}

// add adds a record to store, or without a value a key to remove.
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

// storer sends batches to the server. When send fails it returns the name of the failed call in the
// original.
type storer interface {
	send(ctx context.Context, b *batch) (name string, err error)
}

const (
	nameSet    = "DB::set"
	nameRemove = "DB::remove"
)

// textStorer sends batches over TSV-RPC.
type textStorer struct {
	db      *client.DB
	expires client.Expiry
}

func (s *textStorer) send(ctx context.Context, b *batch) (name string, err error) {
	if len(b.sets) > 0 {
		records := make(map[string][]byte, len(b.sets))
		for _, r := range b.sets {
			records[r.Key] = r.Value
		}
		if _, err := s.db.SetBulk(ctx, records, s.expires, false); err != nil {
			return nameSet, err
		}
	}
	if len(b.removes) > 0 {
		_, err = s.db.RemoveBulk(ctx, b.removes, false)
	}
	return nameRemove, err
}

// binaryStorer sends batches over the binary protocol.
type binaryStorer struct {
	client  *client.Client
	db      uint16
	expires client.Expiry
}

func (s *binaryStorer) send(ctx context.Context, b *batch) (name string, err error) {
	if len(b.sets) > 0 {
		records := make([]client.BinaryRecord, len(b.sets))
		for i, r := range b.sets {
			records[i] = client.BinaryRecord{DB: s.db, Key: r.Key, Value: r.Value, Expiry: s.expires}
		}
		n, err := s.client.SetBinary(ctx, records)
		if err == nil && n < len(records) { // the server skips records of a missing database
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
