package replication

import (
	"errors"
	"fmt"
	"net"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

// Serve answers a follower's request and streams updates until the connection or the server ends.
// Then the caller sends the rest of c.Out and closes the connection.
func (s *Source) Serve(c *netio.Conn, f frame.Follow, peer string) {
	hold := s.opts.Log.Hold(s.holder(f, peer), ulog.Stamp(f.TS))
	defer hold.Release()
	if !f.Extended() {
		hold.EndsWith(c.Gone)
	}
	out, err := s.strangerTo(c.Member, f)
	if err != nil {
		if s.refuses(f.SID, time.Now()) {
			s.opts.Logger.Error(fmt.Sprintf("the slave with sid=%d is refused: %v", f.SID, err))
		}
		c.Out = append(c.Out, byte(frame.Error))
		return
	}
	r, err := s.opts.Log.NewReader(out.from(f))
	if err != nil {
		s.opts.Logger.Error("opening an update log reader failed: " + err.Error())
		if f.Extended() { // it lacks nothing yet, and comes again
			hold.Leave(s.opts.Away)
		}
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
	c.Streams()
	st := stream{source: s, conn: c, reader: r, follow: f, replica: replica, outside: out, timer: time.NewTimer(0)}
	if out != nil && out.plain {
		st.last = ulog.Stamp(f.TS)
	}
	defer st.timer.Stop()
	if s.opts.Quorum != nil && f.Extended() && !st.white() && gap == nil && (c.Member || !s.opts.Members) {
		st.vote = s.opts.Quorum.join(f.SID, peer)
		defer st.vote.leave()
	}
	r.OnRoom(st.room)
	if err := st.run(); err != nil && !errors.Is(err, errEnded) {
		s.opts.Logger.Error(fmt.Sprintf("replication to the slave with sid=%d: %v", f.SID, err))
	}
	s.system("a slave was disconnected: sid=%d", f.SID)
	if f.Extended() && !replica.gap.Load() { // after a gap it fetches copies, see copyHolds
		hold.Leave(s.opts.Away)
	}
}

// holder describes a follower. Its key tells followers apart across connections: a follower comes
// back with the same server ID from the same host, and from another port.
func (s *Source) holder(f frame.Follow, peer string) ulog.Holder {
	by := ulog.Holder{Kind: ulog.Follower, What: fmt.Sprintf("the slave with sid=%d", f.SID), Weak: true, Most: s.opts.Most}
	if !f.Extended() {
		return by
	}
	host, _, err := net.SplitHostPort(peer)
	if err != nil {
		host = peer
	}
	by.Key, by.Lasts = fmt.Sprintf("%d@%s", f.SID, host), s.opts.Away
	return by
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
		t.taken = 0
		primary := t.source.opts.Term != nil && t.source.opts.Term() > 0
		promised, err := t.promise()
		if err == nil {
			err = t.send()
		}
		if err == nil {
			err = t.deliver(max(t.last, t.outside.promises(primary, promised)))
		}
		if err == nil {
			err = t.pause()
		}
		if err != nil {
			return err
		}
	}
}

// deliver sends what has been collected, with a heartbeat behind it if that is due.
func (t *stream) deliver(promised ulog.Stamp) error {
	t.sent = t.sent || t.taken > 0
	if t.heartbeatAt().After(time.Now()) {
		return t.flush()
	}
	return t.heartbeat(promised)
}

// promise returns a stamp that no later update of the log can have: the end of the log for a
// follower of our kind, about the present time for others, as the original does. The log keeps this
// promise also after a crash with the clock set back, and after a power cut that takes records
// which followers have received. If the promise has to be written to the disk first, the updates
// that are there leave before that.
func (t *stream) promise() (ulog.Stamp, error) {
	log := t.source.opts.Log
	at := ulog.StampAt(t.source.opts.Now().Add(-heartbeatLag))
	if t.follow.Extended() {
		at = log.End()
	}
	if !log.Promised(at) {
		if err := t.send(); err != nil {
			return 0, err
		}
		if err := t.flush(); err != nil {
			return 0, err
		}
	}
	return log.Promise(at), nil
}

// heartbeat tells the follower that it has been sent every update up to at, and waits for its
// acknowledgement.
func (t *stream) heartbeat(at ulog.Stamp) error {
	t.replica.sending(t.reader)
	asked := time.Now()
	t.put(frame.Message{Magic: frame.Heartbeat, TS: uint64(at)})
	t.vote.ask(at)
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
	t.vote.acknowledged(at, asked)
	t.beaten, t.sent = time.Now(), false
	return nil
}
