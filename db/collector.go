package db

import "time"

// # Who collects
//
// A record that has expired, or is over a limit, is removed by whoever comes along, as in the
// original: every access adds to a score, and when the score is high enough some records are
// examined. The memory of a database is bounded that way, because a client that writes pays for the
// room.
//
// In a file a step may take long. To find the next record, a scan may have to pass a million
// removed entries; to remove it, the collector waits until the disk has taken earlier updates; and
// the exact count, with which a limit is compared, looks up every key that was written since the
// last one. Would a client take such a step, a get of another key could wait for seconds, without
// a word in the protocol why.
//
// The rule: a client takes steps in memory only. They are short, bounded by what the client itself
// does (take), and never wait: a key that somebody else has locked is left to the next walk. In a
// file the client only wakes the collector, a goroutine of the catalog, which may wait for whatever
// it likes.
//
// Example. Two million records of a file expire at ten o'clock. At 10:00:01 a client reads one
// record: its score wakes the collector, and its reply leaves. The collector examines as many
// records as the score is worth, and sleeps until the next client comes along.
//
// # When clients are faster
//
// 64 connections that fill a file can bring more records than one goroutine removes, and the file
// would outgrow its limit without bound. So the collector notes by how much a limit was exceeded
// when it looked last, and what the removal of a record takes. Above a 64th of the limit, each
// update waits for its turn on one clock for all clients: at first a little, at a 32nd of the limit
// twice as long as its removal takes. So the surplus comes to rest between the two. Clients that
// only read never wait.
//
// Rejected: steps in files by clients, with a deadline. A scan that is stopped among removed entries
// has no key from which the next one could go on, so that the same entries would be passed again
// and again.

// Scores of the collector: every access adds to a sum, and at sweepAt the sum in units of
// writeScore is the number of records to examine.
const (
	writeScore = 256
	readScore  = writeScore / 8
	sweepAt    = 8 * writeScore
	biteScore  = 16 * sweepAt // what a client that does little takes at most of what others left
	idleSteps  = 8
)

// touch adds to the score. When the score is high enough, touch examines some records in memory, or
// has the collector do so in a file. The caller holds no stripe.
func (s *sweeper) touch(score int64) {
	d := s.db
	if s.useless() || d.detached || s.score.Add(score) < sweepAt || d.persistent() || d.readOnly {
		return
	}
	if d.file != nil {
		s.wake()
		if wait := s.pacing.turn(time.Now(), score/writeScore); wait > 0 {
			time.Sleep(wait) //lint:sleep the collector removes records meanwhile
		}
		return
	}
	if !s.mu.TryLock() {
		return // somebody else is at it
	}
	defer s.mu.Unlock()
	if steps := s.take(score); steps > 0 {
		s.sweep(nil, steps, (*stripe).TryLock)
	}
}

// take returns how many records a client examines that has added own to the score: twice what it
// has added, or what a few others have left. The rest of the score is forgotten. It is large where
// somebody else was at it for long, such as a vacuum, and a limit does not depend on it.
func (s *sweeper) take(own int64) int64 {
	return min(s.score.Swap(0), max(2*own, biteScore)) / writeScore
}

// wake has the collector come to the database.
func (s *sweeper) wake() {
	if s.asked.Swap(true) {
		return
	}
	select {
	case s.collector <- struct{}{}:
	default: // it comes anyway, and will see asked
	}
}

// serve examines the records that the score asks for, as the collector. heed ends it early.
func (s *sweeper) serve(heed Heed) {
	if !s.asked.Swap(false) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if steps := s.score.Swap(0) / writeScore; steps > 0 {
		s.sweep(heed, steps, patiently)
	}
}

// idle examines some records of a database that nobody uses.
func (s *sweeper) idle() {
	d := s.db
	if s.useless() || d.persistent() || d.readOnly || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	s.sweep(nil, idleSteps, patiently)
}
