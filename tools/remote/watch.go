package remote

import (
	"context"
	"fmt"

	"gotycoon/client"
	"gotycoon/tools/show"
)

// watcher is one run of watch.
type watcher struct {
	*call
	keys *bool // -keys
}

// watch prints changes of records as they happen, for ever.
func watch(ctx context.Context, c *call) error {
	c.withDB().withHex().withHexOut().withJSON()
	w := &watcher{call: c}
	ts := c.flags.String("ts", now, "begin after this `time stamp`: a number, \"now\", or 0 for all that the update log has")
	w.keys = c.flags.Bool("keys", false, "without values")
	db, err := c.parseAndOpen(ctx, 0, 1)
	if err != nil {
		return err
	}
	o := client.WatchOptions{Keys: *w.keys, All: *ts == "0"}
	if *ts != now && !o.All {
		if o.After, err = parseStamp(*ts); err != nil {
			return err
		}
	}
	if len(c.args) > 0 {
		o.Prefix = c.args[0]
	}
	for u, err := range db.Watch(ctx, o) {
		if err == nil {
			err = w.show(u)
		}
		if err != nil {
			return c.failed("DB::watch", err)
		}
	}
	return nil
}

// show prints a change at once: somebody waits for it.
func (w *watcher) show(u client.Update) error {
	op := map[client.UpdateKind]string{client.Stored: "set", client.Removed: "remove", client.Cleared: "clear"}[u.Kind]
	if w.json {
		line := show.Object{"ts": u.Stamp, "op": op}
		if u.Kind != client.Cleared {
			line.Bytes("key", []byte(u.Key), w.hexOut)
		}
		if u.Kind == client.Stored && !*w.keys {
			line.Bytes("value", u.Value, w.hexOut)
		}
		if !u.Expires.IsZero() {
			line["xt"] = u.Expires.Unix()
		}
		if err := w.printJSON(line); err != nil {
			return err
		}
		return w.out.Flush()
	}
	fmt.Fprintf(w.out, "%d\t%s", u.Stamp, op) // Flush returns the error
	if u.Kind != client.Cleared {
		w.column([]byte(u.Key))
	}
	if u.Kind == client.Stored && !*w.keys {
		w.column(u.Value)
	}
	if !u.Expires.IsZero() {
		fmt.Fprintf(w.out, "\t%d", u.Expires.Unix())
	}
	_ = w.out.WriteByte('\n')
	return w.out.Flush()
}

// column prints a further column of a line.
func (w *watcher) column(b []byte) {
	_ = w.out.WriteByte('\t')
	w.call.print(b)
}
