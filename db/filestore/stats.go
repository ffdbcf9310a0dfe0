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
func (s *Store) Unwritten() int64 {
	v := s.acquire()
	defer v.release()
	sum := s.throttle.bytes.Load()
	if v.frozen != nil {
		sum += v.frozen.tree.Bytes()
	}
	return sum
}

// Reusable returns about how many bytes of updates the file can take without growing, rather too
// few: what the file occupies on disk beyond its records, if their pages are half full. While a
// checkpoint writes, nobody can tell, and the result is 0.
func (s *Store) Reusable() int64 {
	if s.leftover() != nil {
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

// Stats is what a Store has done since it was opened, and what is left to do.
type Stats struct {
	OverlayBytes int64              // memory of the updates that are not in the file
	Checkpoints  *metrics.Histogram // durations of checkpoints in nanoseconds, failed ones included
	Err          error              // why the last checkpoint failed
	Stalls       int64              // updates that had to wait for a checkpoint
	Stalled      time.Duration      // how long at least one update was waiting
}

// Stats returns the figures. It may be called at any time.
func (s *Store) Stats() Stats {
	v := s.acquire()
	memory := s.throttle.bytes.Load()
	if v.frozen != nil {
		memory += v.frozen.tree.Bytes()
	}
	v.release()
	t := &s.throttle
	t.mu.Lock()
	defer t.mu.Unlock()
	stalled := t.stalled
	if t.waiting > 0 {
		stalled += time.Since(t.began)
	}
	return Stats{OverlayBytes: memory, Checkpoints: s.cp.times, Err: t.err, Stalls: t.stalls, Stalled: stalled}
}
