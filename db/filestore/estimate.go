package filestore

import (
	"time"

	"gotycoon/internal/metrics"
)

// settleBytes is how many bytes of keys Estimate looks up at most.
const settleBytes = 512 << 10

// Estimate returns the number of records for people who watch, and never takes long: the exact one when few keys have been written
// since the latest count, else the latest that was known. Each call brings the exact one nearer.
func (s *Store) Estimate() int64 {
	v := s.acquire()
	frozen, few := v.frozen != nil, v.active.fewFresh()
	v.release()
	if !frozen {
		if u, err := s.usageWithin(settleBytes); err == nil && few {
			s.noteExact(u)
			return u.count
		}
	}
	s.cp.mu.Lock()
	defer s.cp.mu.Unlock()
	return s.cp.exact.count
}

// fewFresh tells whether a count has few keys to look up.
func (o *overlay) fewFresh() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.fresh) <= settleBytes/2
}

func (s *Store) noteExact(u usage) {
	s.cp.mu.Lock()
	defer s.cp.mu.Unlock()
	s.cp.exact = u
}

// stalls is what writers have waited for checkpoints. Its times are guarded by checkpointer.mu.
type stalls struct {
	count, waiting int64
	total          time.Duration // of those that have ended
	began          time.Time     // when waiting was last 0 and somebody came
}

func (t *stalls) begin() {
	if t.count++; t.waiting == 0 {
		t.began = time.Now()
	}
	t.waiting++
}

func (t *stalls) end() {
	if t.waiting--; t.waiting == 0 {
		t.total += time.Since(t.began)
	}
}

// Stats is what a Store has done since it was opened, and what it has not done yet.
type Stats struct {
	OverlayBytes int64              // memory of the updates that are not in the file
	Checkpoints  *metrics.Histogram // their times in nanoseconds, tries that failed included
	Err          error              // why the last one failed
	Stalls       int64              // updates that had to wait for a checkpoint
	Stalled      time.Duration      // how long some update or other has waited
}

// Stats returns the figures. It may be called at any time.
func (s *Store) Stats() Stats {
	v := s.acquire()
	memory := s.activeBytes.Load()
	if v.frozen != nil {
		memory += v.frozen.tree.Bytes()
	}
	v.release()
	s.cp.mu.Lock()
	defer s.cp.mu.Unlock()
	t := s.cp.stalls
	if t.waiting > 0 {
		t.total += time.Since(t.began)
	}
	return Stats{OverlayBytes: memory, Checkpoints: s.cp.times, Err: s.cp.err, Stalls: t.count, Stalled: t.total}
}
