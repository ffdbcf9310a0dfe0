package remote

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"gotycoon/client"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// follower is one run of slave.
type follower struct {
	*call
	after  uint64 // -ts
	sid    *int64
	white  *bool
	wait   *bool
	pos    string // -pos
	accept *bool  // -gap-continue
}

// The pause before a lost server is tried again. It doubles with each failure, up to longPause.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
)

// feed is a run of slave that prints updates.
//
// Its promise: across restarts of the feed and of the server, every update is printed at least
// once, and none is skipped silently. The feed keeps the promise by three rules:
//
//   - The position moves on only with updates, never with heartbeats. A server that is restarted
//     with its clock set back may give its next updates stamps below a heartbeat that it sent
//     before. A feed at the heartbeat's stamp would skip them.
//   - The receiver is flushed before the position is saved, see save. A crash between the two
//     prints some lines again; the other order would lose them.
//   - On each new connection check asks the server whether its log still has everything behind the
//     position, and whether it is still the same log.
type feed struct {
	*follower
	to      receiver
	file    keeper
	at      position
	checked bool // check has been called on this connection
	pause   time.Duration
}

// receiver gets the messages of a feed: slave prints them, and migrate writes them to another
// server.
type receiver interface {
	// receive handles an update, a heartbeat, or a stand-in for updates left out by -sid, which has
	// an empty Log. errDone ends the feed.
	receive(ctx context.Context, u client.LogMessage) error
	// flush returns when everything received is where it belongs.
	flush(ctx context.Context) error
}

// keeper keeps the position across restarts.
type keeper interface {
	due(at position) bool // it is time for save
	save(at position) error
}

// errDone ends a feed that has printed all updates.
var errDone = errors.New("nothing is left")

// feed prints updates up to the end of the log, or with -uw for ever.
func (f *follower) feed(ctx context.Context) error {
	file := &positionFile{fs: vfs.OS{}, path: f.pos}
	r := &feed{follower: f, to: f, file: file, at: position{stamp: f.after}, pause: firstPause}
	kept, ok, err := file.load()
	if err != nil {
		return err
	}
	if ok {
		r.at = kept
	}
	if _, err := f.open(ctx); err != nil {
		return f.openError(err)
	}
	if f.pos != "" {
		var stop func()
		ctx, stop = untilSignal(ctx)
		defer stop()
	}
	return errors.Join(r.run(ctx), r.save(context.WithoutCancel(ctx)))
}

// openError is the original's error, and a line with the reason.
func (f *follower) openError(err error) error {
	text := err.Error()
	if i := strings.LastIndex(text, advice("")); i >= 0 {
		text = text[i+len(advice("")):]
	}
	return fmt.Errorf("%s: open error%s", f.peer(), advice(text))
}

// untilSignal returns a context that ends with the first signal to terminate, so that the position
// can still be saved. A second signal kills the process.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// run prints the updates that follow the position. With -uw it connects again, and goes on behind
// the last printed line, whenever the connection ends.
func (r *feed) run(ctx context.Context) error {
	for {
		err := r.follow(ctx)
		switch {
		case errors.Is(err, errDone), ctx.Err() != nil:
			return nil
		case errors.Is(err, client.ErrNoLog):
			return r.openError(err)
		case !errors.Is(err, client.ErrNetwork):
			return err
		case !*r.wait:
			return r.failed("DB::slave", err) // without -uw the output is not complete
		}
		if err := r.save(ctx); err != nil {
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

// rest waits before the next attempt to connect, each time longer. The length is partly random, so
// that the clients of a restarted server do not return all at once. It returns false when ctx has
// ended.
func (r *feed) rest(ctx context.Context) bool {
	long := r.pause/2 + rand.N(r.pause/2)
	r.pause = min(2*r.pause, longPause)
	return pause(ctx, long) == nil
}

// follow prints the updates that come over one connection.
func (r *feed) follow(ctx context.Context) error {
	r.checked = false
	for u, err := range r.client.FollowLog(ctx, r.at.stamp, uint16(*r.sid), *r.white) {
		if err == nil {
			err = r.take(ctx, u)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take handles one message of the stream. At the first message it calls check: now the server reads
// its log and keeps the files, so the answer about the log's beginning stays true while the
// connection lasts.
func (r *feed) take(ctx context.Context, u client.LogMessage) error {
	if !r.checked {
		if err := r.check(ctx); err != nil {
			return err
		}
		r.checked, r.pause = true, firstPause
	}
	if err := r.to.receive(ctx, u); err != nil {
		return err
	}
	if !u.Heartbeat {
		r.at.stamp = u.TS
	}
	if r.file.due(r.at) {
		return r.save(ctx)
	}
	if len(u.Log) > 0 {
		return nil
	}
	if err := r.to.flush(ctx); err != nil {
		return err
	}
	if u.Heartbeat && !*r.wait {
		return errDone
	}
	return nil
}

// save flushes the receiver, and then saves the position that it has reached. This order matters,
// see feed.
func (r *feed) save(ctx context.Context) error {
	if err := r.to.flush(ctx); err != nil {
		return err
	}
	return r.file.save(r.at)
}

// check finds out whether updates behind the position are missing from the server's log. Without
// -uw and -pos nothing is checked: as with the original, the run prints what the log has.
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
	r.at.logID, r.at.file = reach.LogID, reach.File
	switch {
	case lost == "":
		return nil
	case *r.accept:
		r.warn(lost)
		return nil
	}
	return fmt.Errorf("%s: %s; -gap-continue goes on with what there is", r.peer(), lost)
}

// missing describes which updates may be missing, "" if none are. A feed from the beginning of the
// log misses nothing: it asks for what the log has.
func (r *feed) missing(reach client.Reach) string {
	switch {
	case r.at.logID != "" && reach.LogID != "" && r.at.logID != reach.LogID:
		return fmt.Sprintf("the update log is another one than that which ts=%d belongs to: updates may be missing", r.at.stamp)
	case r.at.stamp > 0 && reach.Gap && (r.at.file == 0 || reach.Oldest > r.at.file):
		return fmt.Sprintf("the update log no longer has everything after ts=%d: updates are missing", r.at.stamp)
	}
	return ""
}

// warn prints a warning for people.
func (r *feed) warn(text string) {
	fmt.Fprintf(r.stderr, "%s: warning: %s: %s\n", program, r.peer(), text)
}

// receive prints an update.
func (f *follower) receive(_ context.Context, u client.LogMessage) error {
	if len(u.Log) == 0 {
		return nil
	}
	return f.show(u)
}

// flush prints what is buffered.
func (f *follower) flush(context.Context) error { return f.out.Flush() }

// show prints an update: time stamp, server ID, database, operation, and key and value in Base64.
func (f *follower) show(u client.LogMessage) error {
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

// updateObject makes the JSON object of an update. Keys and values are always in Base64, since a
// value is printed as it is stored, with its expiration time in front.
func updateObject(u client.LogMessage, up ulog.Update, name string, columns [][]byte) map[string]any {
	m := map[string]any{"ts": u.TS, "sid": up.SID, "db": up.DBID, "op": name}
	for i, key := range [...]string{"key_base64", "value_base64"} {
		if i < len(columns) {
			m[key] = base64.StdEncoding.EncodeToString(columns[i])
		}
	}
	return m
}

// unknownPart returns the part that the original prints of an update that it does not understand:
// everything behind the IDs, without the last byte.
func unknownPart(msg []byte) []byte {
	const ids = 4
	if len(msg) <= ids {
		return nil
	}
	return msg[ids : len(msg)-1]
}
