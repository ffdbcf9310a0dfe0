package replication

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gotycoon/internal/words"
	"gotycoon/ulog"
)

// join lists a follower that counts from its first acknowledgement, unless it never can.
func (q *Quorum) join(sid uint16, peer string) *vote {
	if sid == q.opts.SID {
		return nil
	}
	q.mu.Lock()
	defer q.unlock()
	m := q.members[sid]
	if m == nil {
		m = &member{sid: sid}
		q.forgetOldest()
		q.members[sid] = m
	}
	m.peer, m.seen = peer, time.Now()
	v := &vote{quorum: q, member: m, kick: make(chan struct{}, 1)}
	m.votes = append(m.votes, v)
	return v
}

// mostMembers is how many servers are remembered that have gone, for the texts of errors.
const mostMembers = 64

// forgetOldest makes room for a member. The caller holds mu.
func (q *Quorum) forgetOldest() {
	if len(q.members) < mostMembers {
		return
	}
	var oldest *member
	for _, m := range q.members {
		if len(m.votes) == 0 && (oldest == nil || m.seen.Before(oldest.seen)) {
			oldest = m
		}
	}
	if oldest != nil {
		delete(q.members, oldest.sid)
	}
}

// leave ends a connection: it does not count for later stamps.
func (v *vote) leave() {
	if v == nil {
		return
	}
	q := v.quorum
	q.mu.Lock()
	defer q.unlock()
	m := v.member
	m.votes = slices.DeleteFunc(m.votes, func(o *vote) bool { return o == v })
	m.seen = time.Now()
	q.look(m.seen)
}

// ask notes that the follower is about to be asked for a stamp. A kick for an earlier stamp is
// forgotten; who kicks has set Quorum.wanted before, which due looks at afterwards.
func (v *vote) ask(at ulog.Stamp) {
	if v == nil {
		return
	}
	v.asked.Store(uint64(at))
	select {
	case <-v.kick:
	default:
	}
}

// due reports whether the follower is to be asked at once: updates that were sent to it will be
// waited for, or somebody waits for a stamp behind the newest one that it was asked for.
func (v *vote) due(sent bool) bool {
	if v == nil {
		return false
	}
	return sent && v.quorum.required.Load() > 0 || v.quorum.wanted.Load() > v.asked.Load()
}

// kicked returns a channel that has something when due may have become true.
func (v *vote) kicked() <-chan struct{} {
	if v == nil {
		return nil
	}
	return v.kick
}

// acknowledged notes that the follower has everything up to a stamp. It was asked at a time; a
// follower that is late for this stamp too stays late.
func (v *vote) acknowledged(at ulog.Stamp, asked time.Time) {
	if v == nil {
		return
	}
	q := v.quorum
	now := time.Now()
	q.mu.Lock()
	defer q.unlock()
	first := v.acked == 0 || v.late
	v.acked, v.late = max(v.acked, at), v.late && now.Sub(asked) > q.opts.Timeout
	v.member.seen = now
	if first {
		q.look(now)
		return
	}
	q.raise()
}

// raise moves the watermarks on and ends waits. The caller holds mu.
func (q *Quorum) raise() {
	if len(q.watches) > 0 {
		q.tellWatches()
	}
	var room [MaxReplicas]ulog.Stamp
	acks := room[:0]
	for _, m := range q.members {
		if acked, _ := m.here(); acked > 0 && q.eligible(m) {
			acks = append(acks, acked)
		}
	}
	slices.SortFunc(acks, func(a, b ulog.Stamp) int { return cmp.Compare(b, a) })
	for i, acked := range acks[:min(len(acks), MaxReplicas)] {
		l := &q.levels[i+1]
		if acked <= ulog.Stamp(l.confirmed.Load()) {
			continue
		}
		l.confirmed.Store(uint64(acked))
		if q.fence.Load() == nil {
			l.wake(acked)
		}
	}
}

// wake ends the waits up to a stamp. The caller holds Quorum.mu.
func (l *level) wake(upTo ulog.Stamp) {
	n := 0
	for n < len(l.waits) && l.waits[n].at <= upTo {
		l.waits[n].end(nil)
		n++
	}
	l.waits = slices.Delete(l.waits, 0, n)
}

// wake has a stream ask its follower for a stamp, unless it has done so.
func (v *vote) wake(at ulog.Stamp) {
	if v.asked.Load() >= uint64(at) {
		return
	}
	select {
	case v.kick <- struct{}{}:
	default:
	}
}

// look finds out how many followers are there. If they have become too few, they have been so since
// a time. The caller holds mu.
func (q *Quorum) look(since time.Time) {
	q.raise()
	present := 0
	for _, m := range q.members {
		if _, here := m.here(); here && q.eligible(m) {
			present++
		}
	}
	q.present.Store(int32(present))
	for n := range q.levels {
		l := &q.levels[n]
		switch {
		case n > present && l.since.IsZero():
			l.since = since
		case n <= present:
			l.since = time.Time{}
			if l.degraded.Swap(false) {
				line := fmt.Sprintf("updates are answered when %s them, as before", words.FollowersHave(n))
				q.said = append(q.said, func() { q.opts.Logger.Info(line) })
			}
		}
	}
}

// SetCounts has only followers count for which f returns true; nil: all. What is confirmed stays
// confirmed. f is called under a lock and must not wait.
func (q *Quorum) SetCounts(f func(sid uint16) bool) {
	q.mu.Lock()
	defer q.unlock()
	q.counts = f
	q.look(time.Now())
}
