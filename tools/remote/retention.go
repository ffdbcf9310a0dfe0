package remote

import (
	"context"
	"fmt"
	"time"

	"gotycoon/client"
	"gotycoon/tools/show"
)

const standardHold = 24 * time.Hour

// retain tells who needs files of the server's update log, and keeps files under a name.
func retain(ctx context.Context, c *call) error {
	ts := c.flags.String("ts", "", "with hold: keep what is newer than this time `stamp`, or \"now\" (default: as before; a new hold: from now on)")
	ttl := c.flags.Seconds("ttl", standardHold, "with hold: for so many seconds (default 86400, a day)")
	if err := c.withJSON().parse(1, 2); err != nil {
		return err
	}
	do := c.args[0]
	switch named := len(c.args) == 2; {
	case do != "hold" && do != "release" && do != "list":
		return usageError("must be hold NAME, release NAME or list")
	case named != (do != "list"):
		return usageError(map[bool]string{true: "list has no name", false: do + " needs a name"}[named])
	}
	from := uint64(0)
	if c.flags.Changed("ts") {
		var err error
		if from, err = parseStamp(*ts); err != nil {
			return err
		}
	}
	if _, err := c.open(ctx); err != nil {
		return err
	}
	switch do {
	case "hold":
		return c.holdLog(ctx, c.args[1], from, *ttl)
	case "release":
		return c.failed("DB::ulog_release", c.client.UlogRelease(ctx, c.args[1]))
	}
	return c.listHolds(ctx)
}

// holdLog keeps files under a name, and prints the time stamp from which on they are kept.
func (c *call) holdLog(ctx context.Context, name string, from uint64, ttl time.Duration) error {
	at, gap, err := c.client.UlogHold(ctx, name, from, ttl)
	if err != nil {
		return c.failed("DB::ulog_hold", err)
	}
	if err := c.printOne("ts", fmt.Sprint(at)); err != nil || !gap {
		return err
	}
	return fmt.Errorf("the hold %s is in place, but updates newer than %d have been removed from the log already: begin with a new backup", name, at)
}

// listHolds prints who needs files of the log: a line for each holder.
func (c *call) listHolds(ctx context.Context) error {
	holds, err := c.client.UlogHolds(ctx)
	if err != nil {
		return c.failed("DB::ulog_holds", err)
	}
	for i := range holds {
		if err := c.printHold(&holds[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) printHold(h *client.LogHold) error {
	until := "-"
	if !h.Until.IsZero() {
		until = h.Until.UTC().Format(time.RFC3339)
	}
	if c.json {
		o := show.Object{"kind": h.Kind, "what": h.What, "ts": h.From, "files": h.Files, "size": h.Bytes, "since": h.Since.UTC().Format(time.RFC3339)}
		if h.Name != "" {
			o["name"] = h.Name
		}
		if !h.Until.IsZero() {
			o["until"] = until
		}
		return c.printJSON(o)
	}
	_, err := fmt.Fprintf(c.out, "%s\t%d\t%d\t%d\t%s\t%s\n", h.Kind, h.From, h.Files, h.Bytes, until, h.What)
	return err
}
