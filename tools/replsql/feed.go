package replsql

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	readBuffer = 256 << 10
	batchBytes = 16 << 20 // most bytes of lines in a transaction
	firstPause = 100 * time.Millisecond
	longPause  = 10 * time.Second
)

// feed applies lines to a store.
type feed struct {
	store      store
	stderr     io.Writer
	batch      int          // most lines in a transaction
	databases  map[int]bool // databases to keep; empty: all
	persistent map[int]bool // databases without expiration times

	lines []change // read and not yet in the store
	bytes int      // length of the lines
	total int64    // lines read
}

// run reads up to the end of the input. A transaction has the lines that have already arrived, up
// to a limit. So a line that comes alone is applied at once, and when lines come fast they gather
// while the previous transaction is being committed.
func (f *feed) run(ctx context.Context, in io.Reader) error {
	r := bufio.NewReaderSize(in, readBuffer)
	for {
		line, err := r.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			if len(line) > 0 {
				f.warn("the last line was cut off; it comes again when the feed goes on")
			}
			return f.flush(ctx)
		case err != nil:
			return errors.Join(err, f.flush(ctx))
		}
		if err := f.add(line); err != nil {
			return errors.Join(err, f.flush(ctx))
		}
		if len(f.lines) < f.batch && f.bytes < batchBytes && wholeLine(r) {
			continue
		}
		if err := f.flush(ctx); err != nil {
			return err
		}
	}
}

// wholeLine reports whether a line can be read without waiting.
func wholeLine(r *bufio.Reader) bool {
	p, err := r.Peek(r.Buffered())
	return err == nil && bytes.IndexByte(p, '\n') >= 0
}

// add takes a line. A line that cannot be parsed ends the feed: to skip it could lose an update.
func (f *feed) add(line []byte) error {
	f.total++
	c, err := parse(strings.TrimSuffix(string(line), "\n"), f.persistent)
	if err != nil {
		return fmt.Errorf("line %d %w", f.total, err)
	}
	switch {
	case len(f.databases) > 0 && !f.databases[c.dbid]:
		c.op = opUnknown // the position moves on
	case c.op == opUnknown:
		f.warn(fmt.Sprintf("the update with ts=%d is of a kind that is not known, and changes nothing", c.stamp))
	}
	f.lines, f.bytes = append(f.lines, c), f.bytes+len(line)
	return nil
}

// flush applies the lines read. While the database is not there, flush waits and tries again.
func (f *feed) flush(ctx context.Context) error {
	if len(f.lines) == 0 {
		return nil
	}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		_, err := f.store.apply(ctx, f.lines)
		if err == nil {
			break
		}
		if ctx.Err() != nil || !f.store.transient(err) {
			return err
		}
		f.warn(fmt.Sprintf("%v; trying again", err))
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
	clear(f.lines)
	f.lines, f.bytes = f.lines[:0], 0
	return nil
}

func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (f *feed) warn(text string) { fmt.Fprintf(f.stderr, "%s: warning: %s\n", program, text) }
