package remote

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gotycoon/client"
	"gotycoon/ulog"
)

// follower is what slave was asked for.
type follower struct {
	*call
	ts    *string
	sid   *int64
	white *bool
	wait  *bool
}

// slave prints the server's update log, lists its files, or removes them.
func slave(ctx context.Context, c *call) error {
	f := &follower{call: c.withJSON()}
	f.ts = c.flags.String("ts", "", "begin after this `time stamp`, a number or \"now\"; with -ur: remove what is not newer")
	f.sid = c.flags.Integer("sid", 0, "leave out the updates of the server with this ID")
	f.white = c.flags.Bool("ux", false, "print the updates of that server only")
	f.wait = c.flags.Bool("uw", false, "wait for more updates, for ever")
	files := c.flags.Bool("uf", false, "list the log's files")
	cut := c.flags.Bool("ur", false, "remove the log's files but the newest")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	if *files || *cut {
		return f.files(ctx, *cut)
	}
	if _, err := c.open(ctx); err != nil {
		return fmt.Errorf("%s: open error", c.peer())
	}
	return f.follow(ctx)
}

// files lists the log's files, or removes some.
func (f *follower) files(ctx context.Context, cut bool) error {
	if _, err := f.open(ctx); err != nil {
		return err
	}
	if cut {
		return f.failed("DB::ulog_remove", f.client.RemoveLogFiles(ctx, *f.ts))
	}
	list, err := f.client.LogFiles(ctx)
	if err != nil {
		return f.failed("DB::ulog_list", err)
	}
	if f.json {
		return f.printJSON(list)
	}
	for _, file := range list {
		fmt.Fprintf(f.out, "%s\t%d\t%d\n", file.Path, file.Size, file.Last)
	}
	return nil
}

// after is the time stamp to begin after.
func (f *follower) after() uint64 {
	if *f.ts == "now" {
		return uint64(ulog.StampAt(time.Now()))
	}
	n, err := strconv.ParseUint(*f.ts, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// follow prints updates until nothing is left, or with -uw until the server closes the connection.
func (f *follower) follow(ctx context.Context) error {
	for u, err := range f.client.Follow(ctx, f.after(), uint16(*f.sid), *f.white) {
		var failure *client.Error
		switch {
		case errors.As(err, &failure) && failure.Code == client.Network:
			return nil // the server has ended
		case err != nil:
			return fmt.Errorf("%s: open error", f.peer())
		case !u.Heartbeat:
			f.show(u)
			continue
		case !*f.wait:
			return nil
		}
		if err := f.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// show prints one update: time stamp, server, database, what happened, and to which key and value in Base64.
func (f *follower) show(u client.Update) {
	up, err := ulog.ParseMessage(u.Log)
	if len(u.Log) == 0 {
		return // a filler: updates that are not for us
	}
	fmt.Fprintf(f.out, "%d\t%d\t%d\t", u.TS, up.SID, up.DBID)
	switch {
	case err == nil && up.Op == ulog.OpSet:
		fmt.Fprintf(f.out, "set\t%s\t%s\n", encode(up.Key), encode(up.Value))
	case err == nil && up.Op == ulog.OpRemove:
		fmt.Fprintf(f.out, "remove\t%s\n", encode(up.Key))
	case err == nil && up.Op == ulog.OpClear:
		fmt.Fprintf(f.out, "clear\n")
	default:
		fmt.Fprintf(f.out, "unknown\t%s\n", encode(unknownPart(u.Log)))
	}
}

// unknownPart is what the original prints of an update that it does not understand: all behind the IDs but the last byte.
func unknownPart(msg []byte) []byte {
	const ids = 4
	if len(msg) <= ids {
		return nil
	}
	return msg[ids : len(msg)-1]
}

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
