package util

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"gotycoon/internal/vfs"
	"gotycoon/tools/cli"
	"gotycoon/ulog"
)

// updateLog prints the records of a log: the time stamp, and the update in hexadecimal.
func updateLog(ctx context.Context, c *call) error {
	ts := c.flags.String("ts", "0", "begin after this `time stamp`, a number or \"now\"; with -uf: leave out files that end before it")
	wait := c.flags.Bool("uw", false, "wait for more updates, for ever")
	files := c.flags.Bool("uf", false, "list the files of the log")
	if err := c.parse(1, 1); err != nil {
		return err
	}
	after, err := parseStamp(*ts)
	if err != nil {
		return err
	}
	dir := "/"
	if trimmed := strings.TrimRight(c.args[0], "/"); trimmed != "" {
		dir = trimmed
	}
	if err := begin(dir); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if *files {
		return c.listFiles(dir, after)
	}
	r, err := ulog.OpenReader(vfs.OS{}, dir, after, ulog.ReaderOptions{Report: func(err error) { fmt.Fprintf(c.stderr, "%s: %v\n", program, err) }})
	if err != nil {
		return fmt.Errorf("%s: opening the reader failed: %w", dir, err)
	}
	return errors.Join(c.printUpdates(ctx, r, *wait), r.Close())
}

// parseStamp reads the value of -ts.
func parseStamp(text string) (ulog.Stamp, error) {
	if text == "now" || text == "-" {
		return ulog.StampAt(time.Now()), nil
	}
	var n int64
	if err := cli.Int(&n).Set(text); err != nil || n < 0 {
		return 0, usageError("-ts: must be a time stamp")
	}
	return ulog.Stamp(n), nil
}

// begin creates a log if the directory does not exist, as the original does.
func begin(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		log, err := ulog.Open(dir, ulog.Options{})
		if err != nil {
			return err
		}
		return log.Close()
	case err == nil && !info.IsDir():
		return errors.New("not a directory")
	}
	return err
}

func (c *call) listFiles(dir string, from ulog.Stamp) error {
	list, err := ulog.Files(vfs.OS{}, dir)
	if err != nil {
		return err
	}
	for _, file := range list {
		if file.Last >= from {
			fmt.Fprintf(c.out, "%s\t%d\t%d\n", file.Path, file.Size, file.Last)
		}
	}
	return nil
}

// printUpdates prints records up to the end of the log, or with wait until ctx ends.
func (c *call) printUpdates(ctx context.Context, r *ulog.Reader, wait bool) error {
	for {
		e, err := r.Next()
		gap, missing := errors.AsType[*ulog.GapError](err)
		switch {
		case missing: // print the rest of the log, as the original does
			if !gap.Trimmed() {
				fmt.Fprintf(c.stderr, "%s: %v\n", program, gap)
			}
			r.SkipGap()
			continue
		case err == nil:
			if _, err := fmt.Fprintf(c.out, "%d\t% X\n", e.Stamp, e.Message); err != nil {
				return err
			}
			continue
		case !errors.Is(err, io.EOF):
			return err
		case !wait:
			return nil
		}
		if err := c.out.Flush(); err != nil {
			return err
		}
		if err := r.Wait(ctx); err != nil {
			return nil // ctx has ended
		}
	}
}
