package remote

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"gotycoon/client"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// follower is what slave was asked for.
type follower struct {
	*call
	after  uint64 // -ts
	sid    *int64
	white  *bool
	wait   *bool
	pos    string // -pos
	accept *bool  // -gap-continue
}

const (
	firstPause = 100 * time.Millisecond // before a lost server is tried again
	longPause  = 5 * time.Second        // at most, with the pause doubled each time
)

// feed is one run of slave that prints updates.
type feed struct {
	*follower
	file    positionFile
	at      position
	checked bool // the server has been asked, on this connection, whether its log reaches the position
	pause   time.Duration
}

// errDone ends a feed that has printed what there is.
var errDone = errors.New("nothing is left")

// feed prints updates until nothing is left, or with -uw for ever.
func (f *follower) feed(ctx context.Context) error {
	r := &feed{follower: f, file: positionFile{fs: vfs.OS{}, path: f.pos}, at: position{stamp: f.after}, pause: firstPause}
	kept, ok, err := r.file.load()
	if err != nil {
		return err
	}
	if ok {
		r.at = kept
	}
	if _, err := f.open(ctx); err != nil {
		return f.openError()
	}
	if f.pos != "" {
		var stop func()
		ctx, stop = untilSignal(ctx)
		defer stop()
	}
	return errors.Join(r.run(ctx), r.save())
}

func (f *follower) openError() error { return fmt.Errorf("%s: open error", f.peer()) }

// untilSignal returns a context that ends when the process is asked to: the position can be saved then. The next signal kills.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// run follows the server, and with -uw the one that takes its place after a restart, from where the last line has ended.
func (r *feed) run(ctx context.Context) error {
	for {
		err := r.follow(ctx)
		switch {
		case errors.Is(err, errDone), ctx.Err() != nil:
			return nil
		case errors.Is(err, client.ErrNoLog):
			return r.openError()
		case !errors.Is(err, client.ErrNetwork):
			return err
		case !*r.wait:
			return r.failed("DB::slave", err) // the log is not complete
		}
		if err := r.save(); err != nil {
			return err
		}
		if r.pause == firstPause {
			fmt.Fprintf(r.stderr, "%s: %s: the connection has ended (%v); trying again after ts=%d\n", program, r.peer(), err, r.at.stamp)
		}
		if !r.rest(ctx) {
			return nil
		}
	}
}

// rest waits before the next try, longer each time, and not as long as others who lost the server at the same moment. It returns
// false when the feed is to end.
func (r *feed) rest(ctx context.Context) bool {
	long := r.pause/2 + rand.N(r.pause/2)
	r.pause = min(2*r.pause, longPause)
	return pause(ctx, long) == nil
}

// follow prints what comes over one connection.
func (r *feed) follow(ctx context.Context) error {
	r.checked = false
	for u, err := range r.client.Follow(ctx, r.at.stamp, uint16(*r.sid), *r.white) {
		if err == nil {
			err = r.take(ctx, u)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take deals with one message of the stream. The first one tells that the server is reading its log, whose files it
// keeps as long as it reads them: now is the time to ask whether they begin early enough.
func (r *feed) take(ctx context.Context, u client.Update) error {
	if !r.checked {
		if err := r.check(ctx); err != nil {
			return err
		}
		r.checked, r.pause = true, firstPause
	}
	if len(u.Log) > 0 { // none: a heartbeat, or a filler, updates that are not for us
		if err := r.show(u); err != nil {
			return err
		}
	}
	if !u.Heartbeat {
		r.at.stamp = u.TS
	}
	if r.file.due(r.at) {
		return r.save()
	}
	if len(u.Log) > 0 {
		return nil
	}
	if err := r.out.Flush(); err != nil {
		return err
	}
	if u.Heartbeat && !*r.wait {
		return errDone
	}
	return nil
}

// save gives away what has been printed, and then saves how far that is.
func (r *feed) save() error {
	if err := r.out.Flush(); err != nil {
		return err
	}
	return r.file.save(r.at)
}

// check finds out whether updates behind the position have been removed from the server's log. Who prints what there is, from a time
// stamp on and without a position to keep, gets that, as from the original.
func (r *feed) check(ctx context.Context) error {
	if !*r.wait && r.pos == "" {
		return nil
	}
	reach, err := r.client.UlogReach(ctx, r.at.stamp)
	switch {
	case errors.Is(err, client.ErrNetwork):
		return err
	case err != nil:
		r.warn(fmt.Sprintf("it is not known whether the update log has everything after ts=%d: %v", r.at.stamp, err))
		return nil
	}
	lost := r.missing(reach)
	r.at.logID = reach.LogID
	switch {
	case lost == "":
		return nil
	case *r.accept:
		r.warn(lost)
		return nil
	}
	return fmt.Errorf("%s: %s; -gap-continue goes on with what there is", r.peer(), lost)
}

// missing says what may be missing, empty when nothing is. Who begins at the beginning has asked for what there is.
func (r *feed) missing(reach client.Reach) string {
	switch {
	case r.at.logID != "" && reach.LogID != "" && r.at.logID != reach.LogID:
		return fmt.Sprintf("the update log is another one than that which ts=%d belongs to: updates may be missing", r.at.stamp)
	case r.at.stamp > 0 && reach.Gap:
		return fmt.Sprintf("the update log no longer has everything after ts=%d: updates are missing", r.at.stamp)
	}
	return ""
}

// warn writes a line for people.
func (r *feed) warn(text string) {
	fmt.Fprintf(r.stderr, "%s: warning: %s: %s\n", program, r.peer(), text)
}

// show prints one update: time stamp, server, database, what happened, and to which key and value in Base64.
func (f *follower) show(u client.Update) error {
	up, err := ulog.ParseMessage(u.Log)
	name, columns := "unknown", [][]byte{unknownPart(u.Log)}
	switch {
	case err == nil && up.Op == ulog.OpSet:
		name, columns = "set", [][]byte{up.Key, up.Value}
	case err == nil && up.Op == ulog.OpRemove:
		name, columns = "remove", [][]byte{up.Key}
	case err == nil && up.Op == ulog.OpClear:
		name, columns = "clear", nil
	}
	if f.json {
		return f.printJSON(updateObject(u, up, name, columns))
	}
	fmt.Fprintf(f.out, "%d\t%d\t%d\t%s", u.TS, up.SID, up.DBID, name) // Flush returns the error
	for _, column := range columns {
		fmt.Fprintf(f.out, "\t%s", base64.StdEncoding.EncodeToString(column))
	}
	return f.out.WriteByte('\n')
}

// updateObject is an update for programs. Values have the form in which they are stored, so keys and values are always in
// Base64.
func updateObject(u client.Update, up ulog.Update, name string, columns [][]byte) map[string]any {
	m := map[string]any{"ts": u.TS, "sid": up.SID, "db": up.DBID, "op": name}
	for i, key := range [...]string{"key_base64", "value_base64"} {
		if i < len(columns) {
			m[key] = base64.StdEncoding.EncodeToString(columns[i])
		}
	}
	return m
}

// unknownPart is what the original prints of an update that it does not understand: all behind the IDs but the last byte.
func unknownPart(msg []byte) []byte {
	const ids = 4
	if len(msg) <= ids {
		return nil
	}
	return msg[ids : len(msg)-1]
}
