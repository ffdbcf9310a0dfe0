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
	// heartbeatEvery is the pause between two heartbeats. An update does not wait for its end.
	heartbeatEvery = 100 * time.Millisecond
	// extendedEvery is the same for followers of our kind: one that has everything need not be told ten times in a second.
	extendedEvery = time.Second
	// heartbeatShare is what each follower adds to the pause of all, once that is longer: a thousand get a heartbeat per second each.
	heartbeatShare = time.Millisecond
	// wakeShare is what each follower adds to the shortest time between two wake-ups of one: while updates come all the time, thousands of
	// followers wake up as seldom as those of the original, for more updates at a time. An update after a pause leaves at once.
	wakeShare = 50 * time.Microsecond
	maxSpread = 100 * time.Millisecond
	// idleSpread is how much longer that is for a follower that was woken up for nothing.
	idleSpread = 4
	// fewFollowers need not be spread.
	fewFollowers = 8
	// fillerEvery is the number of consecutive updates not for the follower after which it is told how far they go.
	fillerEvery = 256
	// heartbeatLag is how far heartbeats stay behind the clock when there is nothing to send, as the original's do.
	heartbeatLag = time.Second
	// messageHead is the part of a log message that says whose it is: sid and dbid.
	messageHead = 4
	// flushAt is the size from which on collected messages are sent.
	flushAt = 64 << 10
	// shareAt is the size from which on a group is sent from the memory that all followers share.
	shareAt = 8 << 10
	// behindEvery is how often a follower of our kind is told how far it is behind.
	behindEvery = time.Second
)

// errEnded ends a stream that nobody did anything wrong about: the follower or the server is gone.
var errEnded = errors.New("the connection has ended")

// stream is what one follower is being sent.
type stream struct {
	source   *Source
	conn     *netio.Conn
	reader   *ulog.Reader
	follow   frame.Follow
	replica  *replica
	timer    *time.Timer
	groups   []*ulog.Group
	last     ulog.Stamp // newest update read, sent or not
	filtered int        // consecutive updates not sent
	woken    time.Time  // when the follower was last sent something for other reasons than the time
	told     time.Time  // when it was last told how far it is behind
	beaten   time.Time  // when it has acknowledged the last heartbeat
	sent     bool       // something has left since
	idle     bool       // there was nothing for it when it was last woken up
}

// run alternates between what the log has and heartbeats. What a heartbeat says is found out before the log is read to its end:
// a follower that is told a stamp never asks for updates up to it again. send returns nil only at the end of the log, and the reader is
// there only when nothing has been removed in front of it unread; a gap ends the stream.
func (t *stream) run() error {
	if extended(t.follow) {
		t.conn.Out = frame.AppendHello(t.conn.Out, t.source.hello(t.reader))
		if err := t.flush(); err != nil {
			return err
		}
		if t.reader.Lost() != nil {
			return errEnded // the Hello has told it
		}
	}
	for {
		settled := t.settle()
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

// heartbeatDue tells whether the follower has been sent something, or has heard nothing for long.
func (t *stream) heartbeatDue() bool {
	t.idle = !t.sent && len(t.conn.Out) == 0
	return !t.idle || time.Since(t.beaten) >= t.heartbeatPause()
}

// heartbeatPause is how long the log is quiet before the follower is sent a heartbeat.
func (t *stream) heartbeatPause() time.Duration {
	return heartbeatPause(t.source.opts.Replicas.len(), extended(t.follow))
}

// settle returns a stamp up to which the follower has everything when it has been sent what there is: for one of our kind the end of the
// log, and for others about the present time, as the original says. The log keeps that promise also after a crash with the clock set back.
func (t *stream) settle() ulog.Stamp {
	log := t.source.opts.Log
	if extended(t.follow) {
		return log.SettleEnd()
	}
	return log.Settle(ulog.StampAt(t.source.opts.Now().Add(-heartbeatLag)))
}

// send sends everything that the log has for the follower.
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
		t.offer(e)
		if err := t.flushIfMuch(); err != nil {
			return err
		}
	}
}

// cutOff ends the stream in front of updates that have been removed before they could be sent. A follower of our kind is told, and fetches
// a copy; another one comes back with its position, and is refused.
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

// cutOffDamaged is cutOff for updates that cannot be read any more: they are as good as removed. Without the word a follower would come
// back for them for ever.
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

// skip passes over what is not for the follower, where that is all there is: thousands of followers that want nothing of what is written must
// not each look at it. The next heartbeat tells how far it goes.
func (t *stream) skip() {
	if n, last := t.reader.Skip(t.follow.SID, !t.white()); n > 0 {
		t.last, t.filtered = last, 0
	}
}

// offerGroup puts the updates of a group into the stream, those that are for the follower.
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

// offer puts an update into the stream if it is for the follower. A malformed one is sent as it is.
func (t *stream) offer(e ulog.Entry) {
	t.last = e.Stamp
	sid, ok := sidOf(e.Message)
	if ok && (sid == int(t.follow.SID)) == t.white() {
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

func (t *stream) put(m frame.Message) { t.conn.Out = frame.AppendMessage(t.conn.Out, m) }

// white tells whether the follower wants the updates of one server only.
func (t *stream) white() bool { return t.follow.Flags&frame.WhiteSID != 0 }

// flushIfMuch sends what has been collected when it is worth it.
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

// tellBehind tells a follower that has been sent updates for long how many there still are. The list of followers knows it, too.
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

// heartbeat tells the follower up to where it has everything, and reads its acknowledgement.
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

func (t *stream) flush() error {
	if t.conn.Flush() != nil {
		return errEnded
	}
	return nil
}

// pause waits for the next update, but not longer than until the next heartbeat.
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

// wait returns when a channel is closed, a time is over, or with errEnded when the server stops.
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

// heartbeatPause is how long the log is quiet before one of n followers is sent a heartbeat.
func heartbeatPause(n int, extended bool) time.Duration {
	pause := heartbeatEvery
	if extended {
		pause = extendedEvery
	}
	return max(pause, min(time.Duration(n)*heartbeatShare, 2*time.Second))
}

// wakePause is the shortest time between two wake-ups of one of n followers.
func wakePause(n int) time.Duration {
	if n <= fewFollowers {
		return 0
	}
	return min(time.Duration(n)*wakeShare, maxSpread)
}
