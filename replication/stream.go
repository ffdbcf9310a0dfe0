package replication

import (
	"errors"
	"fmt"
	"io"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

const (
	// fillerEvery: after this many consecutive updates that are not for the follower, it is told
	// the stamp of the last one.
	fillerEvery = 256
	// flushAt: collected messages are sent when they reach this size.
	flushAt = 64 << 10
	// shareAt: a group of at least this size is not copied, but sent from the memory that all
	// followers share. A smaller one leaves in one packet with the heartbeat behind it.
	shareAt = flushAt
	// roomEvery is the pause between two looks whether there is memory for a large update.
	roomEvery = 10 * time.Millisecond
	// behindEvery is how often a follower of our kind is told how many updates it lacks.
	behindEvery = time.Second
)

// stream sends the update log to one follower.
type stream struct {
	source   *Source
	conn     *netio.Conn
	reader   *ulog.Reader
	follow   frame.Follow
	replica  *replica
	vote     *vote    // nil: the follower does not count
	outside  *outside // nil: the follower is a member, or there is no cluster
	timer    *time.Timer
	groups   []*ulog.Group
	last     ulog.Stamp // newest update read, whether it was sent or not
	filtered int        // consecutive updates that were not sent
	woken    time.Time  // when the stream last woke up for new updates
	told     time.Time  // when the follower was last told how many updates it lacks
	beaten   time.Time  // when the follower acknowledged the last heartbeat
	sent     bool       // something has been sent since that heartbeat
	taken    int        // updates sent since the stream was last woken up
	stopped  time.Time  // when the stream saw that the server stops; zero: it does not
}

// send sends everything that the log has for the follower, to the end of the log.
func (t *stream) send() error {
	t.told = time.Now()
	for {
		if t.outside == nil {
			if err := t.sendGroups(); err != nil {
				return err
			}
		}
		e, err := t.next()
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

// next returns the next update of the log, or io.EOF when there is none for now.
func (t *stream) next() (ulog.Entry, error) {
	if t.outside != nil {
		return t.outside.next(t.reader)
	}
	return t.reader.Next()
}

// sendGroups sends the newest updates, which all followers share in memory, if the stream has come
// that far.
func (t *stream) sendGroups() error {
	t.skip()
	t.groups = t.reader.Tail(t.groups[:0])
	defer clear(t.groups)
	for _, g := range t.groups {
		if err := t.offerGroup(g); err != nil {
			return err
		}
	}
	return nil
}

// offerRead puts an update that was read from the log into the stream if it is for the follower. A
// large update is sent from the reader's memory, without another copy.
func (t *stream) offerRead(e ulog.Entry) error {
	if len(e.Message) < flushAt || !t.wants(e) {
		t.offer(e)
		return t.flushIfMuch()
	}
	t.last, t.filtered = e.Stamp, 0
	t.taken++
	if t.follow.Extended() {
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
	if !t.follow.Extended() {
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

// cutOffDamaged is cutOff for updates that cannot be read any more: they are as lost as removed
// updates. A follower of our kind that is not told would ask for the same updates for ever.
func (t *stream) cutOffDamaged(damage *ulog.DamageError) error {
	then := "is cut off there: " + remedy
	if t.follow.Extended() {
		then = "will fetch a copy"
	}
	if s := t.source; s.refuses(t.follow.SID, time.Now()) {
		s.opts.Logger.Error(fmt.Sprintf("the slave with sid=%d needs updates that cannot be read: it %s (%v)", t.follow.SID, then, damage))
	}
	if !t.follow.Extended() {
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
	t.taken += g.Count
	b := f.plain
	if t.follow.Extended() {
		b = f.extended
	}
	if len(b) < shareAt {
		t.conn.Out = append(t.conn.Out, b...)
		return t.flushIfMuch()
	}
	if t.conn.Send(b) != nil {
		return errEnded
	}
	return t.tellBehind()
}

// offer puts an update into the stream if it is for the follower. A malformed update is for nobody,
// and counts as filtered.
func (t *stream) offer(e ulog.Entry) {
	t.last = e.Stamp
	if t.wants(e) {
		if t.follow.Extended() {
			t.conn.Out = appendOrigin(t.conn.Out, e.Origin)
		}
		t.conn.Out = appendUpdate(t.conn.Out, e)
		t.filtered = 0
		t.taken++
		return
	}
	if t.filtered++; t.filtered == fillerEvery {
		t.put(frame.Message{Magic: frame.Replication, TS: uint64(e.Stamp)})
		t.filtered = 0
		t.taken++
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
	if n, known := t.replica.unsent(); known && t.follow.Extended() {
		t.conn.Out = frame.AppendBehind(t.conn.Out, n)
	}
	return nil
}

// room takes memory for a large update that is to be read, or gives it back. Followers that all
// want the same large update take turns where there is not enough memory for all of them: each has
// a copy of its own.
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

// wait returns when more is closed or the time is over. It returns errEnded when the server stops.
func (t *stream) wait(more <-chan struct{}, limit time.Duration) error {
	t.timer.Reset(limit)
	select {
	case <-more:
		t.woken = time.Now()
	case <-t.vote.kicked():
		t.woken = time.Now()
	case <-t.timer.C:
	case <-t.source.opts.Done:
	}
	select {
	case <-t.source.opts.Done:
		return t.end(more)
	default:
		return nil
	}
}

const (
	endsAfter = 100 * time.Millisecond // a stream that confirms lives on for so long at a stop
	endLook   = 5 * time.Millisecond
)

// end returns errEnded when a stream may end while the server stops. Requests that are still being
// served may have to be confirmed: such a stream goes on while anybody waits, and until the last
// requests have had time to begin to wait. The server cuts streams that go on for too long.
func (t *stream) end(more <-chan struct{}) error {
	now := time.Now()
	if t.stopped.IsZero() {
		t.stopped = now
	}
	if t.vote == nil || !t.vote.quorum.busy(now.Sub(t.stopped) < endsAfter) {
		return errEnded
	}
	t.timer.Reset(endLook)
	select {
	case <-more:
	case <-t.vote.kicked():
	case <-t.timer.C:
	}
	return nil
}
