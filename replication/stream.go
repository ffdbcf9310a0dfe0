package replication

import (
	"errors"
	"fmt"
	"io"
	"time"

	"gotycoon/binproto/frame"
	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

const (
	// heartbeatEvery is the pause between two heartbeats. Updates do not wait for a heartbeat.
	heartbeatEvery = 100 * time.Millisecond
	// extendedEvery is the pause for followers of our kind, which need no sign of life ten times a
	// second.
	extendedEvery = time.Second
	// heartbeatShare makes the pause longer when there are many followers: the pause is at least
	// this long for each of them. A thousand followers get one heartbeat a second each.
	heartbeatShare = time.Millisecond
	// wakeShare is the same for the shortest time between two wake-ups of a follower. While updates
	// come all the time, thousands of followers wake up rarely and take many updates at a time, as
	// followers of the original do. An update after a quiet time leaves at once.
	wakeShare = 50 * time.Microsecond
	// maxSpread is the upper limit of the time that wakeShare makes.
	maxSpread = 100 * time.Millisecond
	// idleSpread: this time is so many times longer for a follower that was woken up for nothing.
	idleSpread = 4
	// fewFollowers: up to this number of followers each wakes up at once.
	fewFollowers = 8
	// fillerEvery: after this many consecutive updates that are not for the follower, it is told
	// the stamp of the last one.
	fillerEvery = 256
	// heartbeatLag is how far heartbeats for slaves of the original stay behind the clock when
	// there is nothing to send, as the original's do.
	heartbeatLag = time.Second
	// messageHead is the length of the sid and dbid at the beginning of a log message.
	messageHead = 4
	// flushAt: collected messages are sent when they reach this size.
	flushAt = 64 << 10
	// shareAt: a group of at least this size is not copied, but sent from the memory that all
	// followers share.
	shareAt = 8 << 10
	// roomEvery is the pause between two looks whether there is memory for a large update.
	roomEvery = 10 * time.Millisecond
	// behindEvery is how often a follower of our kind is told how many updates it lacks.
	behindEvery = time.Second
)

// errEnded ends a stream without an error line: the follower or the server has gone.
var errEnded = errors.New("the connection has ended")

// stream sends the update log to one follower.
type stream struct {
	source   *Source
	conn     *netio.Conn
	reader   *ulog.Reader
	follow   frame.Follow
	replica  *replica
	timer    *time.Timer
	groups   []*ulog.Group
	last     ulog.Stamp // newest update read, whether it was sent or not
	filtered int        // consecutive updates that were not sent
	woken    time.Time  // when new updates last woke the stream up
	told     time.Time  // when the follower was last told how many updates it lacks
	beaten   time.Time  // when the follower acknowledged the last heartbeat
	sent     bool       // something has been sent since that heartbeat
	idle     bool       // there was nothing for the follower when it was last woken up
}

// run sends updates and heartbeats in turn. A heartbeat with the stamp S promises that the follower
// has been sent every update for it up to S, and the follower will never ask for these updates
// again. So no update for it with a stamp up to S may be unsent when the heartbeat leaves.
//
// Therefore run asks for the stamp (settle) before it reads the log to its end (send), not after.
// In the other order an update would be lost:
//
//	send reads to the end of the log, the last update has the stamp 100
//	another client writes an update with the stamp 110
//	settle, asked now, would return 120: the heartbeat would promise 110 unsent
//
// Asked first, promise returns a stamp that no later update can have (ulog.Log.Promise). send returns
// nil only at the end of the log, and a gap ends the stream, so no update between the follower's
// position and the end is skipped.
func (t *stream) run() error {
	if extended(t.follow) {
		t.conn.Out = frame.AppendHello(t.conn.Out, t.source.hello(t.reader))
		if err := t.flush(); err != nil {
			return err
		}
		if t.reader.Lost() != nil {
			return errEnded // the Hello has told the follower of the gap
		}
	}
	for {
		settled := t.promise()
		if err := t.send(); err != nil {
			return err
		}
		if t.heartbeatDue() {
			if err := t.heartbeat(max(t.last, settled)); err != nil {
				return err
			}
		}
		if err := t.pause(); err != nil {
			return err
		}
	}
}

// heartbeatDue reports whether the follower has been sent something since the last heartbeat, or
// has heard nothing for a heartbeat's pause.
func (t *stream) heartbeatDue() bool {
	t.idle = !t.sent && len(t.conn.Out) == 0
	return !t.idle || time.Since(t.beaten) >= t.heartbeatPause()
}

// heartbeatPause returns how long the log must be quiet before the follower is sent a heartbeat.
func (t *stream) heartbeatPause() time.Duration {
	return heartbeatPause(t.source.opts.Replicas.len(), extended(t.follow))
}

// promise returns a stamp that no later update of the log can have: the end of the log for a
// follower of our kind, about the present time for others, as the original does. The log keeps this
// promise also after a crash with the clock set back.
func (t *stream) promise() ulog.Stamp {
	log := t.source.opts.Log
	if extended(t.follow) {
		return log.PromiseEnd()
	}
	return log.Promise(ulog.StampAt(t.source.opts.Now().Add(-heartbeatLag)))
}

// send sends everything that the log has for the follower, to the end of the log.
func (t *stream) send() error {
	t.told = time.Now()
	for {
		t.skip()
		t.groups = t.reader.Tail(t.groups[:0])
		for _, g := range t.groups {
			if err := t.offerGroup(g); err != nil {
				return err
			}
		}
		clear(t.groups)
		e, err := t.reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if gap, ok := errors.AsType[*ulog.GapError](err); ok {
			return t.cutOff(gap)
		}
		if damage, ok := errors.AsType[*ulog.DamageError](err); ok {
			return t.cutOffDamaged(damage)
		}
		if err != nil {
			return err
		}
		if err := t.offerRead(e); err != nil {
			return err
		}
	}
}

// offerRead puts an update that was read from the log into the stream if it is for the follower. A
// large one is sent from where it has been read to.
func (t *stream) offerRead(e ulog.Entry) error {
	if len(e.Message) < flushAt || !t.wants(e) {
		t.offer(e)
		return t.flushIfMuch()
	}
	t.last, t.filtered, t.sent = e.Stamp, 0, true
	if extended(t.follow) {
		t.conn.Out = appendOrigin(t.conn.Out, e.Origin)
	}
	t.conn.Out = frame.AppendMessageHead(t.conn.Out, messageOf(e))
	if t.conn.Send(e.Message) != nil {
		return errEnded
	}
	return t.tellBehind()
}

// cutOff ends the stream at a gap: updates were removed before they could be sent. A follower of
// our kind is told in a Hello, and fetches a copy. Another follower comes back with its old
// position and is refused.
func (t *stream) cutOff(gap *ulog.GapError) error {
	t.replica.gap.Store(true)
	if !extended(t.follow) {
		t.source.tellGap(t.follow.SID, gap, "is cut off: "+remedy)
		return errEnded
	}
	t.source.tellGap(t.follow.SID, gap, "will fetch a copy")
	t.conn.Out = frame.AppendHello(t.conn.Out, t.source.hello(t.reader))
	if err := t.flush(); err != nil {
		return err
	}
	return errEnded
}

// cutOffDamaged is cutOff for updates that cannot be read any more, which are as lost as removed
// ones. A follower that is not told would ask for the same updates for ever.
func (t *stream) cutOffDamaged(damage *ulog.DamageError) error {
	then := "is cut off there: " + remedy
	if extended(t.follow) {
		then = "will fetch a copy"
	}
	if s := t.source; s.refuses(t.follow.SID, time.Now()) {
		s.opts.Logger.Error(fmt.Sprintf("the slave with sid=%d needs updates that cannot be read: it %s (%v)", t.follow.SID, then, damage))
	}
	if !extended(t.follow) {
		return errEnded
	}
	t.replica.gap.Store(true)
	t.conn.Out = frame.AppendHello(t.conn.Out, t.source.hello(t.reader))
	if err := t.flush(); err != nil {
		return err
	}
	return errEnded
}

// skip passes over updates that are not for the follower if no others are left: thousands of
// followers that want nothing of what is written need not look at each update. The next heartbeat
// tells the stamp.
func (t *stream) skip() {
	if n, last := t.reader.Skip(t.follow.SID, !t.white()); n > 0 {
		t.last, t.filtered = last, 0
	}
}

// offerGroup puts those updates of a group into the stream that are for the follower.
func (t *stream) offerGroup(g *ulog.Group) error {
	if g.Count == 0 {
		return nil
	}
	f := feedOf(g)
	switch wanted := (f.sid == int(t.follow.SID)) == t.white(); {
	case f.sid == mixed, !wanted && t.filtered+g.Count >= fillerEvery:
		g.Each(t.offer)
		return t.flushIfMuch()
	case !wanted:
		t.filtered += g.Count
		t.last = g.Last
		return nil
	}
	t.last, t.filtered = g.Last, 0
	b := f.plain
	if extended(t.follow) {
		b = f.extended
	}
	if len(b) < shareAt {
		t.conn.Out = append(t.conn.Out, b...)
		return t.flushIfMuch()
	}
	t.sent = true
	if t.conn.Send(b) != nil {
		return errEnded
	}
	return t.tellBehind()
}

// offer puts an update into the stream if it is for the follower. A malformed update goes to
// nobody, but counts.
func (t *stream) offer(e ulog.Entry) {
	t.last = e.Stamp
	if t.wants(e) {
		if extended(t.follow) {
			t.conn.Out = appendOrigin(t.conn.Out, e.Origin)
		}
		t.conn.Out = appendUpdate(t.conn.Out, e)
		t.filtered = 0
		return
	}
	if t.filtered++; t.filtered == fillerEvery {
		t.put(frame.Message{Magic: frame.Replication, TS: uint64(e.Stamp)})
		t.filtered = 0
	}
}

// wants reports whether an update is for the follower.
func (t *stream) wants(e ulog.Entry) bool {
	sid, ok := sidOf(e.Message)
	return ok && (sid == int(t.follow.SID)) == t.white()
}

func (t *stream) put(m frame.Message) { t.conn.Out = frame.AppendMessage(t.conn.Out, m) }

// white reports whether the follower wants only the updates of the server whose ID it names.
// Otherwise it wants all updates but those.
func (t *stream) white() bool { return t.follow.Flags&frame.WhiteSID != 0 }

// flushIfMuch sends the collected messages if they have reached flushAt.
func (t *stream) flushIfMuch() error {
	if len(t.conn.Out) < flushAt {
		return nil
	}
	t.sent = true
	if err := t.flush(); err != nil {
		return err
	}
	return t.tellBehind()
}

// tellBehind tells a follower, while it is sent updates for a long time, how many are left. It
// notes the same for the list of followers.
func (t *stream) tellBehind() error {
	t.replica.sending(t.reader)
	now := time.Now()
	if now.Sub(t.told) < behindEvery {
		return nil
	}
	t.told = now
	if n, known := t.replica.unsent(); known && extended(t.follow) {
		t.conn.Out = frame.AppendBehind(t.conn.Out, n)
	}
	return nil
}

// heartbeat tells the follower that it has been sent every update up to at, and waits for its
// acknowledgement.
func (t *stream) heartbeat(at ulog.Stamp) error {
	t.replica.sending(t.reader)
	asked := time.Now()
	t.put(frame.Message{Magic: frame.Heartbeat, TS: uint64(at)})
	if err := t.flush(); err != nil {
		return err
	}
	t.replica.asking(asked)
	t.conn.Restart()
	if len(t.conn.Buffered()) == 0 && t.conn.Fill() != nil {
		return errEnded
	}
	if t.conn.Buffered()[0] != byte(frame.Ack) {
		return errEnded
	}
	t.conn.Advance(1)
	t.replica.acknowledged(at, asked)
	t.beaten, t.sent = time.Now(), false
	return nil
}

// room takes memory for a large update that is to be read, or gives it back. Followers that all
// want the same large update take turns where there is not enough memory for all of them: each has a
// copy of its own.
func (t *stream) room(bytes int) error {
	if bytes < 0 {
		return t.conn.Keep(bytes)
	}
	gone := t.conn.Heed("")
	for t.conn.KeepInTurn(bytes) != nil {
		if err := gone(); err != nil && !errors.Is(err, netio.ErrLong) {
			return errEnded
		}
		if err := t.wait(nil, roomEvery); err != nil {
			return err
		}
	}
	return nil
}

func (t *stream) flush() error {
	if t.conn.Flush() != nil {
		return errEnded
	}
	return nil
}

// pause waits for the next update, at most until the next heartbeat is due.
func (t *stream) pause() error {
	due := t.beaten.Add(t.heartbeatPause())
	spread := wakePause(t.source.opts.Replicas.len())
	if t.idle {
		spread *= idleSpread
	}
	if spread -= time.Since(t.woken); spread > 0 {
		if err := t.wait(nil, spread); err != nil {
			return err
		}
	}
	more, err := t.reader.More()
	if err == nil && more != nil {
		err = t.wait(more, time.Until(due))
	}
	return err
}

// wait returns when more is closed or the time is over. It returns errEnded when the server stops.
func (t *stream) wait(more <-chan struct{}, limit time.Duration) error {
	t.timer.Reset(limit)
	select {
	case <-more:
		t.woken = time.Now()
	case <-t.timer.C:
	case <-t.source.opts.Done:
	}
	select {
	case <-t.source.opts.Done:
		return errEnded
	default:
		return nil
	}
}

// heartbeatPause returns how long the log must be quiet before one of n followers is sent a
// heartbeat.
func heartbeatPause(n int, extended bool) time.Duration {
	pause := heartbeatEvery
	if extended {
		pause = extendedEvery
	}
	return max(pause, min(time.Duration(n)*heartbeatShare, 2*time.Second))
}

// wakePause returns the shortest time between two wake-ups of one of n followers.
func wakePause(n int) time.Duration {
	if n <= fewFollowers {
		return 0
	}
	return min(time.Duration(n)*wakeShare, maxSpread)
}
