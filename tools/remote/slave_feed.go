package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"gotycoon/client"
	"gotycoon/internal/vfs"
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
	limits silence
}

// silence is how long a server may send nothing before a feed with -uw connects again.
type silence struct {
	scan time.Duration // before its first heartbeat
	beat time.Duration // after it
}

// silence returns the limits: those of -tout, or else the usual ones. The server sends heartbeats
// again and again when it has sent all updates, so a longer silence means that the connection is
// dead. Before that an original may be silent for minutes: it reads its log from the beginning of a
// file, and passes over what was not asked for, before it sends the first byte. To connect again
// would make it begin anew each time.
func (c *call) silence() silence {
	if limit := *c.timeout; limit > 0 {
		return silence{scan: limit, beat: limit}
	}
	return silence{scan: 10 * time.Minute, beat: 10 * time.Second}
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
	if _, err := f.openBinary(ctx); err != nil {
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
	if known, ok := errors.AsType[*noConnection](err); ok {
		err = &lostServer{known.addr, known.cause}
	}
	return fmt.Errorf("%s: open error\n%s: %w", f.peer(), program, err)
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
			return r.openError(inEngine(ctx, r.client, err))
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

// follow prints the updates that come over one connection. The time that it needs itself is no
// silence of the server.
func (r *feed) follow(ctx context.Context) error {
	r.checked = false
	heard, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := r.limits.scan
	quiet := time.AfterFunc(limit, func() { cancel(errSilent) })
	defer quiet.Stop()
	for u, err := range r.client.FollowLog(heard, r.at.stamp, uint16(*r.sid), *r.white) {
		quiet.Stop()
		if err == nil {
			err = r.take(ctx, u)
		}
		if err != nil {
			return err
		}
		if u.Heartbeat {
			limit = r.limits.beat
		}
		quiet.Reset(limit)
	}
	return nil
}

// errSilent is the end of a connection on which nothing comes.
var errSilent = errors.New("the server has sent nothing for too long")

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
	limited, cancel := context.WithTimeout(ctx, r.limits.beat)
	defer cancel()
	reach, err := r.client.UlogReach(limited, r.at.stamp)
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
