package filestore

import (
	"os"
	"syscall"
	"time"

	"gotycoon/internal/metrics"
)

// FileSize returns the size of the file in bytes.
func (s *Store) FileSize() int64 {
	info, err := os.Stat(s.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Unwritten returns the bytes of memory that updates take which are not in the file yet.
func (s *Store) Unwritten() int64 { return s.brake.memory() }

// Reusable returns about how many bytes of updates the file can take without growing, rather too
// few: what the file occupies on disk beyond its records, if their pages are half full. While a
// checkpoint writes, nobody can tell, and the result is 0.
func (s *Store) Reusable() int64 {
	if s.view.Load().oldest() != nil {
		return 0
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	const block, entry, halfFull = 512, 16, 2
	m := s.Meta()
	return max(0, int64(stat.Blocks)*block-halfFull*(m.Bytes+entry*m.Count))
}

// PagesAsked returns how many pages of the file scans have asked the system for since Open, because
// they were not in memory. A scan waits for them as a get does for a major fault, but the system
// does not count them as such.
func (s *Store) PagesAsked() uint64 { return s.asked.Load() }

// Stats is what a Store has done since it was opened, and what is left to do.
type Stats struct {
	OverlayBytes int64              // memory of the updates that are not in the file
	ReserveBytes int64              // memory of earlier updates that is kept for the next ones
	Runs         int64              // runs in the file that are not merged
	Fill         float64            // how far the debt is, see brake.go: 0 none, 1 writers stop
	Checkpoints  *metrics.Histogram // durations of flushes in nanoseconds, failed ones included
	Err          error              // why the last flush failed
	MergeErr     error              // why the last piece of a merge failed
	Stalls       int64              // updates that were slowed down or stopped
	Stalled      time.Duration      // how long at least one update was waiting
	Compaction   CompactionStats
}

// Stats returns the figures. It may be called at any time.
func (s *Store) Stats() Stats {
	b := &s.brake
	st := Stats{OverlayBytes: b.memory(), ReserveBytes: s.reserve.Bytes(), Runs: b.runs.Load(), Fill: b.fill(), Checkpoints: s.cp.times}
	st.Compaction = s.compactor.stats()
	b.mu.Lock()
	defer b.mu.Unlock()
	st.Err, st.MergeErr, st.Stalls, st.Stalled = b.err, b.unmerged, b.stalls, b.stalled
	if b.waiting > 0 {
		st.Stalled += time.Since(b.began)
	}
	return st
}
