package replication

import (
	"errors"
	"fmt"
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
	// wakeShare makes the shortest time between two wake-ups of a stream longer when there are many
	// followers, by so much for each of them. While updates come all the time, thousands of streams
	// wake up rarely and take many updates at a time, as those of the original do. An update after
	// a quiet time leaves at once.
	wakeShare = 50 * time.Microsecond
	// maxSpread is the upper limit of the shortest time between two wake-ups, before idleSpread.
	maxSpread = 100 * time.Millisecond
	// idleSpread: the shortest time between two wake-ups is so many times longer for a stream whose
	// latest wake-up was for nothing.
	idleSpread = 4
	// fewFollowers: up to this number of followers each wakes up at once.
	fewFollowers = 8
	// heartbeatLag is how far heartbeats for slaves of the original stay behind the clock when
	// there is nothing to send, as the original's do.
	heartbeatLag = time.Second
)

// Serve answers a follower's request and streams updates until the connection or the server ends.
// Then the caller sends the rest of c.Out and closes the connection.
func (s *Source) Serve(c *netio.Conn, f frame.Follow, peer string) {
	hold := s.opts.Log.HoldWeakly(fmt.Sprintf("the slave with sid=%d", f.SID), ulog.Stamp(f.TS))
	defer hold.Release()
	who := idOf(f, peer)
	if f.Extended() {
		s.away.back(who)
	} else {
		hold.EndsWith(c.Gone)
	}
	r, err := s.opts.Log.NewReader(ulog.Stamp(f.TS))
	if err != nil {
		s.opts.Logger.Error("opening an update log reader failed: " + err.Error())
		c.Out = append(c.Out, byte(frame.Error))
		return
	}
	defer r.Close()
	gap, _ := errors.AsType[*ulog.GapError](r.Lost())
	if !s.meetGap(r, f, gap) {
		c.Out = append(c.Out, byte(frame.Error))
		return
	}
	s.system("a slave was connected: ts=%d sid=%d", f.TS, f.SID)
	replica := s.opts.Replicas.add(s.opts.Log, peer, f)
	replica.hold = &followerHold{hold: hold, grace: s.opts.Grace, at: ulog.Stamp(f.TS), since: time.Now()}
	defer s.opts.Replicas.remove(replica)
	replica.gap.Store(gap != nil)
	c.Out = append(c.Out, byte(frame.Replication))
	st := stream{source: s, conn: c, reader: r, follow: f, replica: replica, timer: time.NewTimer(0)}
	defer st.timer.Stop()
	r.OnRoom(st.room)
	if err := st.run(); err != nil && !errors.Is(err, errEnded) {
		s.opts.Logger.Error(fmt.Sprintf("replication to the slave with sid=%d: %v", f.SID, err))
	}
	s.system("a slave was disconnected: sid=%d", f.SID)
	if f.Extended() && !replica.gap.Load() { // after a gap it fetches copies, see copyHolds
		s.away.leave(s.opts.Log, who, hold)
	}
}

// run sends updates and heartbeats in turn. A heartbeat with the stamp S promises that the follower
// has been sent every update for it up to S, and the follower will never ask for these updates
// again. So no update for it with a stamp up to S may be unsent when the heartbeat leaves.
//
// Therefore run asks for the stamp (promise) before it reads the log to its end (send), not after.
// In the other order an update would be lost:
//
//	send reads to the end of the log, the last update has the stamp 100
//	another client writes an update with the stamp 110
//	promise, asked now, would return 120: the heartbeat would promise 110 unsent
//
// Asked first, promise returns a stamp that no later update can have (ulog.Log.Promise). send
// returns nil only at the end of the log, and a gap ends the stream, so no update between the
// follower's position and the end is skipped.
func (t *stream) run() error {
	if t.follow.Extended() {
		t.conn.Out = frame.AppendHello(t.conn.Out, t.source.hello(t.reader))
		if err := t.flush(); err != nil {
			return err
		}
		if t.reader.Lost() != nil {
			return errEnded // the Hello has told the follower of the gap
		}
	}
	for {
		promised := t.promise()
		if err := t.send(); err != nil {
			return err
		}
		if t.heartbeatDue() {
			if err := t.heartbeat(max(t.last, promised)); err != nil {
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
	return heartbeatPause(t.source.opts.Replicas.len(), t.follow.Extended())
}

// promise returns a stamp that no later update of the log can have: the end of the log for a
// follower of our kind, about the present time for others, as the original does. The log keeps this
// promise also after a crash with the clock set back.
func (t *stream) promise() ulog.Stamp {
	log := t.source.opts.Log
	if t.follow.Extended() {
		return log.PromiseEnd()
	}
	return log.Promise(ulog.StampAt(t.source.opts.Now().Add(-heartbeatLag)))
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
