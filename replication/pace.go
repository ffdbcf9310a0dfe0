package replication

import "time"

// When a stream sends, and when it asks.
//
// # The problem
//
// A single update is to leave at once: it should be on the follower within a tenth of a
// millisecond. But each message that leaves alone costs a wake-up and some ten system calls on
// both sides. With a client that stores bulks of 100 records, and a heartbeat for each of them that
// the follower acknowledges, that is a tenth of all processor time of both servers. And a stream
// that waits for an acknowledgement sends nothing: an update that comes meanwhile is late by the
// time that the follower needs to write its log.
//
// # The rules
//
//   - After a quiet time an update leaves at once.
//   - A stream that has just sent many updates (lingerMany) takes the next ones after a millisecond
//     (linger), together.
//   - A slave of the original is sent a heartbeat behind all that the log had, as by the original.
//   - While clients wait for followers (-sync-replicas, or a request that asks for them), a stream
//     asks behind all that the log had, and does not linger: the pace is the follower's. Clients
//     that come while an acknowledgement is under way share the next one (vote.due).
//   - A follower of our kind that has been sent something is sent a heartbeat when the last one is
//     askEvery ago. So single updates that are further apart than that leave with a heartbeat in
//     the same packet, and a flow of updates has a hundred heartbeats in a second.
//
//	 0.0 ms   update 1, after a quiet second    update 1 and heartbeat 1 leave
//	 0.3 ms   update 2                          update 2 leaves
//	 0.5 ms   a bulk of 100                     100 updates leave; the stream lingers
//	 1.5 ms   two bulks have come meanwhile     200 updates leave; the stream lingers
//	10.2 ms   askEvery after acknowledgement 1  heartbeat 2 leaves
//
// # What was rejected
//
// A goroutine of its own for the acknowledgements of each follower: the stream could send while it
// waits for one, but the wake-ups remain, and a server with thousands of followers pays for
// thousands of goroutines more. The same for clients that wait for followers (full duplex) has not
// been built: the updates of a round trip gather for the next one, as the groups of the log gather
// during an fsync. That keeps 0.77 of the rate of 64 connections that set single records, and 0.87
// with bulks (BENCHMARKS.md), with p99 where it was.
//
// A heartbeat when a flow has been quiet for a millisecond: each update sets a timer that is
// earlier than all others, for which Go wakes a thread up; the median delay of single updates was
// 7 percent longer. A longer time to linger saves less and less: with 2 ms, and with 5 ms, the two
// servers together need 4 and 5 percent less processor time than with 1 ms.

const (
	// heartbeatEvery is the pause between two heartbeats. Updates do not wait for a heartbeat.
	heartbeatEvery = 100 * time.Millisecond
	// extendedEvery is the pause for followers of our kind, which need no sign of life ten times a
	// second.
	extendedEvery = time.Second
	// heartbeatShare makes the pause longer when there are many followers: the pause is at least
	// this long for each of them. A thousand followers get one heartbeat a second each.
	heartbeatShare = time.Millisecond
	// heartbeatLag is how far heartbeats for slaves of the original stay behind the clock when
	// there is nothing to send, as the original's do.
	heartbeatLag = time.Second

	// askEvery is how long a follower of our kind is sent updates without being asked for an
	// acknowledgement.
	askEvery = 10 * time.Millisecond

	// linger is the shortest time between two wake-ups of a stream when the first of the two has
	// brought lingerMany updates.
	linger     = time.Millisecond
	lingerMany = 64
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
)

// heartbeatAt returns when the next heartbeat is due.
func (t *stream) heartbeatAt() time.Time {
	switch {
	case t.vote.due(t.sent):
		return t.beaten
	case !t.sent:
		return t.beaten.Add(heartbeatPause(t.source.opts.Replicas.len(), t.follow.Extended()))
	case !t.follow.Extended():
		return t.beaten
	}
	return t.beaten.Add(askEvery)
}

// pause waits for the next update, at most until the next heartbeat is due.
func (t *stream) pause() error {
	due := t.heartbeatAt()
	spread := wakePause(t.source.opts.Replicas.len())
	switch {
	case t.taken == 0:
		spread *= idleSpread
	case t.vote.due(true):
		spread = 0
	case t.taken >= lingerMany:
		spread = max(spread, linger)
	}
	if spread -= time.Since(t.woken); spread > 0 {
		if err := t.wait(nil, spread); err != nil {
			return err
		}
	}
	if t.outside.unconfirmed() {
		confirmed, end := t.source.opts.Quorum.reach(t.outside.held.Stamp, t.outside.required)
		defer end()
		return t.wait(confirmed, time.Until(due))
	}
	more, err := t.reader.More()
	switch {
	case err != nil:
		return err
	case more == nil: // they have come meanwhile
		t.woken = time.Now()
		return nil
	}
	return t.wait(more, time.Until(due))
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
