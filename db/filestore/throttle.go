package filestore

import (
	"os"
	"syscall"
	"time"

	"gotycoon/internal/metrics"
)

// Throttle waits while the active overlay has twice its limit without large values, or eight times
// with them; see "The checkpoint and its stalls". The error says why the file cannot take the
// updates.
func (s *Store) Throttle() error {
	return s.cp.waitUntil(func() bool {
		all := s.activeBytes.Load()
		return all < stallAt*s.opts.Limit || all < largeStall*s.opts.Limit && all-s.activeLarge.Load() < stallAt*s.opts.Limit
	})
}

// ThrottleLarge is Throttle for a caller that is about to store a large value: everything in the
// overlay counts.
func (s *Store) ThrottleLarge() error { return s.throttleAt(stallAt * s.opts.Limit) }

// ThrottleReplay is Throttle for the replay of the log at the start.
func (s *Store) ThrottleReplay() error { return s.throttleAt(replayStall * s.opts.Limit) }

func (s *Store) throttleAt(limit int64) error {
	return s.cp.waitUntil(func() bool { return s.activeBytes.Load() < limit })
}

// waitUntil waits until there is room for updates, and counts the wait as a stall.
func (c *checkpointer) waitUntil(free func() bool) error {
	if free() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalls.begin()
	defer c.stalls.end()
	for !free() {
		if c.err != nil {
			return c.err
		}
		c.wakeUp()
		c.room.Wait()
	}
	return nil
}

// stalls counts the waits of writers for checkpoints. Its fields are guarded by checkpointer.mu.
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

// Unwritten returns the bytes of memory that updates take which are not in the file yet.
func (s *Store) Unwritten() int64 {
	v := s.acquire()
	defer v.release()
	sum := s.activeBytes.Load()
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
