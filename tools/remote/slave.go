package remote

import (
	"context"
	"fmt"
	"math"
)

// slave prints the server's update log, lists its files, or removes them.
func slave(ctx context.Context, c *call) error {
	f := &follower{call: c.withJSON()}
	ts := c.flags.String("ts", "0", "begin after this `time stamp`, a number or \"now\"; with -ur: remove what is not newer")
	f.sid = c.flags.Integer("sid", 0, "leave out the updates of the server with this ID")
	f.white = c.flags.Bool("ux", false, "print the updates of that server only")
	f.wait = c.flags.Bool("uw", false, "wait for more updates, for ever; a server that is gone is waited for, too")
	files := c.flags.Bool("uf", false, "list the log's files")
	cut := c.flags.Bool("ur", false, "remove the log's files but the newest")
	c.flags.StringVar(&f.pos, "pos", "", "keep the time stamp of the last update printed in this `file`, and begin after the one in it")
	f.accept = c.flags.Bool("gap-continue", false, "with -uw or -pos: go on, with a warning, when the log no longer has all updates (default: exit code 1)")
	err := c.parse(0, 0)
	if err == nil {
		f.after, err = parseStamp(*ts)
	}
	switch {
	case err != nil:
		return err
	case *f.sid < 0 || *f.sid > math.MaxUint16:
		return usageError("-sid: must be 0 to 65535")
	case *cut:
		return f.removeFiles(ctx)
	case *files:
		return f.listFiles(ctx)
	}
	f.limits = c.silence()
	if !*f.wait && *c.timeout <= 0 { // one connection, for as long as it takes
		f.limits = silence{scan: math.MaxInt64, beat: math.MaxInt64}
	}
	return f.feed(ctx)
}

// removeFiles removes files of the log.
func (f *follower) removeFiles(ctx context.Context) error {
	if _, err := f.open(ctx); err != nil {
		return err
	}
	return f.failed("DB::ulog_remove", f.client.UlogRemove(ctx, f.after))
}

// listFiles lists the files of the log.
func (f *follower) listFiles(ctx context.Context) error {
	if _, err := f.open(ctx); err != nil {
		return err
	}
	list, err := f.client.UlogList(ctx)
	if err != nil {
		return f.failed("DB::ulog_list", err)
	}
	for _, file := range list {
		if !f.json {
			fmt.Fprintf(f.out, "%s\t%d\t%d\n", file.Path, file.Size, file.Last) // Flush returns the error
			continue
		}
		if err := f.printJSON(map[string]any{"path": file.Path, "size": file.Size, "ts": file.Last}); err != nil {
			return err
		}
	}
	return nil
}
