package httpapi

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"gotycoon/internal/lenient"
	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

// The procedure watch: a stream of changes. rpcWatch decides whether there is one; what is sent is
// in watch.go.

const (
	heartbeatUsual = 10 * time.Second
	heartbeatLeast = 100 * time.Millisecond
	heartbeatMost  = time.Minute

	// watchAhead is how much newer than now a stamp may be that a client has been told by a server
	// whose clock is fast.
	watchAhead = time.Minute

	// roomEvery is the pause between two looks whether there is memory for a large update.
	roomEvery = 10 * time.Millisecond
)

func rpcWatch(c *call) error {
	if c.opts.Catalog.Log() == nil || c.opts.Watches == nil {
		return errNoWatch
	}
	after, now, err := c.watchFrom()
	if err != nil {
		return err
	}
	// The rights are those to the name of the database, and the log has its number.
	since := c.opts.Catalog.Log().NamedSince(c.db.Index())
	if !now && after > 0 && after < since {
		return &goneError{fmt.Errorf("up to ts=%d the number of %s in the update log was another database's", since, c.db.Name())}
	}
	w := &watching{number: c.db.Index(), persistent: c.db.Info().Persistent,
		keys: c.in.Has("keys"), heartbeat: heartbeatUsual}
	w.prefix, _ = c.in.Get("prefix")
	if text, ok := c.in.Get("heartbeat"); ok {
		seconds := lenient.Float(text)
		if !(seconds >= heartbeatLeast.Seconds() && seconds <= heartbeatMost.Seconds()) { // NaN too
			return fmt.Errorf("%w: heartbeat must be 0.1 to 60 seconds", errInvalidParameters)
		}
		w.heartbeat = time.Duration(seconds * float64(time.Second))
	}
	if err := c.beginWait(); err != nil {
		return err
	}
	resume, err := c.conn.Park()
	if err != nil {
		c.out.lack = err
		return err
	}
	leave, err := c.opts.watchers.enter(c.conn.Visitor, c.conn.Client())
	if err != nil {
		resume()
		return err
	}
	w.leave = func() {
		leave()
		resume()
	}
	w.Watch, err = c.opts.Watches.Watch(after, now, since, c.db.Replicas(), c.watchRoom)
	if err != nil {
		w.leave()
		if isGone(err) {
			return &goneError{err}
		}
		return &ClusterError{Err: err}
	}
	c.watch, c.mute = w, true
	if !now {
		return nil
	}
	// What is there already is told by nobody, so it must be safe before the client is told that
	// the watch has begun: from then on it hears of every change that is acknowledged.
	if err := c.db.Seen(&c.conn.Owed); err != nil {
		return err
	}
	if unconfirmed, err := c.conn.Confirm(); err != nil && !unconfirmed {
		return errBroken
	} else if err != nil {
		return err
	}
	return nil
}

// isGone reports whether an error says that the log lacks updates.
func isGone(err error) bool {
	_, gap := errors.AsType[*ulog.GapError](err)
	_, damage := errors.AsType[*ulog.DamageError](err)
	return gap || damage || errors.Is(err, ErrGone)
}

// watchFrom returns the stamp behind which the client wants changes, or that it wants what happens
// from now on. The ID of the last event that a browser has seen goes before the parameter, which is
// the same at each attempt.
func (c *call) watchFrom() (after ulog.Stamp, now bool, err error) {
	text := c.req.LastEvent()
	if len(text) == 0 {
		text, _ = c.in.Get("ts")
	}
	if len(text) == 0 || string(text) == "now" {
		return 0, true, nil
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%w: ts must be a time stamp, or now", errInvalidParameters)
	}
	after = ulog.Stamp(n)
	if last := c.opts.Catalog.Log().Last(); after > max(last, ulog.StampAt(c.opts.Now().Add(watchAhead))) {
		return 0, false, fmt.Errorf("%w: ts=%d is newer than the update log, which ends at %d: another server's?", errInvalidParameters, after, last)
	}
	return after, false, nil
}

// watchRoom takes memory for a large update, or gives it back. A watch waits until there is memory.
func (c *call) watchRoom(bytes int) error {
	if bytes < 0 {
		return c.conn.Keep(bytes)
	}
	for c.conn.KeepInTurn(bytes) != nil {
		if c.conn.Gone() || c.watch != nil && c.watch.Stopping() {
			return netio.ErrGone
		}
		<-time.After(roomEvery)
	}
	return nil
}
