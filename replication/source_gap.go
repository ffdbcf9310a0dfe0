package replication

import (
	"fmt"
	"time"

	"gotycoon/binproto/frame"
	"gotycoon/ulog"
)

// What becomes of a follower when updates that it needs have been removed from the log.
//
// A follower of our kind is told of the gap in a Hello, and fetches a copy. (It may also have asked
// once more for an update that it has, see parted.go; so the log line is written when the copy
// begins.)
//
// A slave of the original has no message for a gap. It would continue with the next update that is
// left, and its next position would hide that updates are missing. So it is refused, or cut off,
// before it is told any stamp behind the gap. It comes back with its old position and is refused
// again, until somebody gives it a copy or another position.
//
// A follower that asks for the log from its beginning (time stamp 0) gets what is left, as from the
// original. So do programs that print the log and are no slaves: they have no server ID, want the
// updates of one server only, or ask with frame.Remaining.

// refusedEvery: a refused slave comes back every second, but the log repeats the refusal only this
// often.
const refusedEvery = time.Minute

// meetGap handles a gap in front of the first update of a stream; gap is nil if there is none. It
// returns false if the follower is to be refused, and skips the gap for a follower that wants what
// is left.
func (s *Source) meetGap(r *ulog.Reader, f frame.Follow, gap *ulog.GapError) bool {
	s.mu.Lock()
	delete(s.told, f.SID)
	if gap != nil && extended(f) {
		s.told[f.SID] = gap
	}
	s.mu.Unlock()
	switch {
	case gap == nil || extended(f):
		return true
	case f.TS == 0 || f.SID == 0 || f.Flags != 0:
		s.tellGap(f.SID, gap, "goes on with what is left; if it is a slave, give it a copy of the databases")
		r.SkipGap()
		return true
	}
	if s.refuses(f.SID, time.Now()) {
		s.tellGap(f.SID, gap, "is refused: "+remedy)
	}
	return false
}

const remedy = "give it a copy of the databases with the copy's time stamp in its RTS file, or have it go on without the missing updates from a " +
	"later time stamp (ktremotemgr tunerepl -ts)"

// tellGap logs which updates a follower misses, and what becomes of it.
func (s *Source) tellGap(sid uint16, gap *ulog.GapError, then string) {
	s.opts.Logger.Error(fmt.Sprintf("the slave with sid=%d misses updates, because files of the update log that held some newer than ts=%d have been "+
		"removed: it %s (%v)", sid, gap.From, then, gap))
}

// tellCopied logs once that a follower fetches copies, if it does so because of a gap.
func (s *Source) tellCopied(sid uint16) {
	s.mu.Lock()
	gap := s.told[sid]
	delete(s.told, sid)
	s.mu.Unlock()
	if gap != nil {
		s.tellGap(sid, gap, "will fetch a copy")
	}
}

// refuses reports whether the refusal of a slave is to be logged now.
func (s *Source) refuses(sid uint16, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.refused[sid]; known && now.Sub(last) < refusedEvery {
		return false
	}
	s.refused[sid] = now
	return true
}
