package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gotycoon/client"
	"gotycoon/tools/cli"
	"gotycoon/ulog"
)

// follower is what slave was asked for.
type follower struct {
	*call
	after uint64 // -ts
	sid   *int64
	white *bool
	wait  *bool
}

// slave prints the server's update log, lists its files, or removes them.
func slave(ctx context.Context, c *call) error {
	f := &follower{call: c.withJSON()}
	ts := c.flags.String("ts", "0", "begin after this `time stamp`, a number or \"now\"; with -ur: remove what is not newer")
	f.sid = c.flags.Integer("sid", 0, "leave out the updates of the server with this ID")
	f.white = c.flags.Bool("ux", false, "print the updates of that server only")
	f.wait = c.flags.Bool("uw", false, "wait for more updates, for ever")
	files := c.flags.Bool("uf", false, "list the log's files")
	cut := c.flags.Bool("ur", false, "remove the log's files but the newest")
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
	if _, err := c.open(ctx); err != nil {
		return f.openError()
	}
	return f.follow(ctx)
}

// now as a time stamp means: from here on. So does "-".
const now = "now"

func parseStamp(text string) (uint64, error) {
	if text == now || text == "-" {
		return uint64(ulog.StampAt(time.Now())), nil
	}
	var n int64
	if err := cli.Int(&n).Set(text); err != nil || n < 0 {
		return 0, usageError("-ts: must be a time stamp")
	}
	return uint64(n), nil
}

func (f *follower) openError() error { return fmt.Errorf("%s: open error", f.peer()) }

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

// follow prints updates until nothing is left, or with -uw until the server closes the connection.
func (f *follower) follow(ctx context.Context) error {
	for u, err := range f.client.Follow(ctx, f.after, uint16(*f.sid), *f.white) {
		switch {
		case errors.Is(err, client.ErrNetwork) && *f.wait:
			return nil // the server has ended
		case errors.Is(err, client.ErrNetwork):
			return f.failed("DB::slave", err) // the log is not complete
		case err != nil:
			return f.openError()
		case !u.Heartbeat && len(u.Log) > 0: // none: a filler, updates that are not for us
			if err := f.show(u); err != nil {
				return err
			}
			continue
		case u.Heartbeat && !*f.wait:
			return nil
		}
		if err := f.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}
