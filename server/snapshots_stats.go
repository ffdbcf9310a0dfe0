package server

import (
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/ulog"
)

// snapshotStats is what a scrape wants to know of snapshots, without waiting for one under way. The zero value is empty.
type snapshotStats struct {
	failed atomic.Int64
	rounds atomic.Int64 // all databases, one after the other
	nanos  atomic.Int64 // of the latest round

	mu     sync.Mutex // protects newest
	newest map[int]ulog.Stamp
}

// taken notes a snapshot on the disk.
func (s *snapshotStats) taken(index int, at ulog.Stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil {
		s.newest = map[int]ulog.Stamp{}
	}
	s.newest[index] = max(s.newest[index], at)
}

func (s *snapshotStats) took(d time.Duration) {
	s.rounds.Add(1)
	s.nanos.Store(int64(d))
}

// at returns the instant of the newest snapshot of a database; ok is false when there is none.
func (s *snapshotStats) at(index int) (at ulog.Stamp, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok = s.newest[index]
	return at, ok
}
