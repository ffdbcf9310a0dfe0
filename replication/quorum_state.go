package replication

import (
	"errors"
	"fmt"
	"time"

	"gotycoon/internal/words"
	"gotycoon/ulog"
)

// QuorumState is a Quorum at one moment.
type QuorumState struct {
	Required int    // followers that an update needs, where its database has no number of its own
	Present  int    // followers that count and are there
	Refusing bool   // updates are refused, because followers are missing
	Degraded bool   // updates are answered without followers, see QuorumOptions.Degrade
	Fenced   bool   // nothing is acknowledged, see Quorum.Fence
	Trouble  string // what is missing while Refusing or Degraded
	Waiting  int64  // goroutines that wait for followers

	// Updates and readers since the start.
	Refused     int64 // before they were appended
	Unconfirmed int64 // stored here and not confirmed in time
	Unwaited    int64 // answered without followers
}

// State returns the present state.
func (q *Quorum) State() QuorumState {
	f := &q.figures
	s := QuorumState{
		Required: q.Required(), Present: int(q.present.Load()), Fenced: q.fence.Load() != nil, Waiting: f.waiting.Load(),
		Refused: f.refused.Load(), Unconfirmed: f.unconfirmed.Load(), Unwaited: f.degraded.Load(),
	}
	q.mu.Lock()
	defer q.unlock()
	now := time.Now()
	most := max(s.Required, q.opts.Databases)
	for n := range q.levels {
		if q.levels[n].degraded.Load() {
			s.Degraded, most = true, max(most, n)
		}
	}
	s.Refusing = !q.opts.Degrade && q.absent(most, now)
	if s.Refusing || s.Degraded {
		s.Trouble = fmt.Sprintf("%s must have an update: %s", words.Followers(most), q.missing(most, now))
	}
	return s
}

// Word is the state in one word: off, confirming, refusing, degraded or fenced.
func (s *QuorumState) Word() string {
	switch {
	case s.Fenced:
		return "fenced"
	case s.Degraded:
		return "degraded"
	case s.Refusing:
		return "refusing"
	case s.Required > 0:
		return "confirming"
	}
	return "off"
}

// Has returns how many followers that count have acknowledged everything up to a stamp, and waits
// until there are n, for limit at most. A stamp that n followers had and that some of them lost
// sight of by disconnecting counts as had by n.
func (q *Quorum) Has(at ulog.Stamp, n int, limit time.Duration) (have int, err error) {
	if n = min(n, MaxReplicas); n > 0 {
		if err := q.await(n, at, limit, false); err != nil && !errors.Is(err, errLate) {
			return 0, err
		}
	}
	q.mu.Lock()
	defer q.unlock()
	for _, m := range q.members {
		if acked, _ := m.here(); acked >= at && acked > 0 && q.eligible(m) {
			have++
		}
	}
	for have < MaxReplicas && ulog.Stamp(q.levels[have+1].confirmed.Load()) >= at {
		have++
	}
	return have, nil
}
