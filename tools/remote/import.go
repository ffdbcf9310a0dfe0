package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gotycoon/client"
)

const (
	importRecordsAtOnce = 1000
	importBytesAtOnce   = 1 << 20
)

// importer stores the lines of a file. Lines that set and lines that remove are sent together as far as they stand
// together, so that the order per key is kept.
type importer struct {
	*call
	db       *client.DB
	xt       client.XT
	binary   bool
	progress progress

	sets    []client.BinaryRecord // lines not yet sent: either these
	removes []string              // or these
	size    int
}

// importRecords stores records from lines with a key and a value; a line with a key alone removes its record.
func importRecords(ctx context.Context, c *call) error {
	c.withDB().withHex()
	binary := c.flags.Bool("bin", false, "use the binary protocol; the database must be a number")
	xt := c.withExpiry()
	if err := c.parse(0, 1); err != nil {
		return err
	}
	c.args = c.flags.Args() // a file's name is never hexadecimal
	in, size, err := c.input()
	if err != nil {
		return err
	}
	defer in.Close()
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	im := &importer{call: c, db: db, xt: client.XT(*xt), binary: *binary, progress: newProgress(c, size)}
	err = im.run(ctx, in)
	im.progress.end()
	return err
}

// input opens the file, or standard input. size is 0 where it is not known.
func (c *call) input() (io.ReadCloser, int64, error) {
	if len(c.args) == 0 {
		return io.NopCloser(c.stdin), 0, nil
	}
	f, err := os.Open(c.args[0])
	if err != nil {
		return nil, 0, fmt.Errorf("%s: open error", c.args[0])
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// run reads lines of any length to the end.
func (im *importer) run(ctx context.Context, in io.Reader) error {
	r := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			if err := im.line(ctx, line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return im.send(ctx)
		}
		if err != nil {
			return fmt.Errorf("read the input: %w", err)
		}
	}
}

// line takes one line: carriage returns and NUL bytes are dropped, lines with more than two columns are left out.
func (im *importer) line(ctx context.Context, line []byte) error {
	im.progress.line(len(line))
	columns := strings.Split(string(dropped(line)), "\t")
	if im.hexIn {
		for i := range columns {
			columns[i] = string(decodeHex(columns[i]))
		}
	}
	switch len(columns) {
	case 1:
		return im.remove(ctx, columns[0])
	case 2:
		return im.set(ctx, columns[0], columns[1])
	}
	return nil
}

// dropped returns a line without its end and without the bytes that no column has.
func dropped(line []byte) []byte {
	out := line[:0]
	for _, b := range line {
		if b != '\n' && b != '\r' && b != 0 {
			out = append(out, b)
		}
	}
	return out
}

func (im *importer) set(ctx context.Context, key, value string) error {
	if len(im.removes) > 0 {
		if err := im.send(ctx); err != nil {
			return err
		}
	}
	im.sets = append(im.sets, client.BinaryRecord{DB: im.number(), Key: key, Value: []byte(value), XT: im.xt})
	return im.grown(ctx, len(key)+len(value))
}

func (im *importer) remove(ctx context.Context, key string) error {
	if len(im.sets) > 0 {
		if err := im.send(ctx); err != nil {
			return err
		}
	}
	im.removes = append(im.removes, key)
	return im.grown(ctx, len(key))
}

// grown sends what has been collected when it is enough for one request.
func (im *importer) grown(ctx context.Context, by int) error {
	if im.size += by; im.size >= importBytesAtOnce || len(im.sets)+len(im.removes) >= importRecordsAtOnce {
		return im.send(ctx)
	}
	return nil
}

// send stores or removes what has been collected. When it returns the server has acknowledged all of it.
func (im *importer) send(ctx context.Context) (err error) {
	switch {
	case len(im.sets) > 0 && im.binary:
		err = im.sendBinary(ctx)
	case len(im.sets) > 0:
		records := make(map[string][]byte, len(im.sets)) // of lines with one key the last counts, as if one by one
		for _, r := range im.sets {
			records[r.Key] = r.Value
		}
		_, err = im.db.SetBulk(ctx, records, im.xt, false)
		err = im.failed("DB::set", err)
	case len(im.removes) > 0 && im.binary:
		_, err = im.client.RemoveBinary(ctx, im.number(), im.removes, false)
		err = im.failed("DB::remove", err)
	case len(im.removes) > 0:
		_, err = im.db.RemoveBulk(ctx, im.removes, false)
		err = im.failed("DB::remove", err)
	}
	im.progress.stored(len(im.sets) + len(im.removes))
	im.sets, im.removes, im.size = im.sets[:0], im.removes[:0], 0
	return err
}

func (im *importer) sendBinary(ctx context.Context) error {
	n, err := im.client.SetBinary(ctx, im.sets, false)
	if err == nil && n != len(im.sets) {
		return fmt.Errorf("DB::set failed: %s: %d: %s: no such database", im.peer(), int(client.Invalid), client.Invalid)
	}
	return im.failed("DB::set", err)
}
