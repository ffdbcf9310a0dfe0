package coconut

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db"
	"gotycoon/primary"
)

const (
	reserveSeconds = 4 // how far ahead of the clock a bound is written
	renewSeconds   = 2 // and how near the clock may come before the next one is
)

// sequence gives out moments, each greater than all before it, in this process and in those before it.
//
// The second is the clock's, but never goes back; the serial goes on from number to number, and where it overflows the second grows.
// A bound is durable before a second is used: after a crash the sequence goes on at the bound, above everything given out. So
// neither a restart within a second nor a clock that was set back repeats a number.
type sequence struct {
	name    string
	records *records
	primary *primary.Role
	now     func() time.Time

	last  atomic.Uint64 // moment given out last
	bound atomic.Uint64 // durable: seconds given out are below it

	reserveMu sync.Mutex // held over the writing of a bound
	renewing  atomic.Bool
	renewals  sync.WaitGroup // the goroutine that writes the next bound ahead of time, at most one
}

func openSequence(name string, r *records, p *primary.Role, now func() time.Time) (*sequence, error) {
	own, _, err := r.bounds(name)
	if err != nil {
		return nil, err
	}
	s := &sequence{name: name, records: r, primary: p, now: now} // without a bound, so that the first number is one of a second that is reserved anew
	s.last.Store(own << serialBits)
	return s, nil
}

// fetch gives out n consecutive moments and returns the first.
func (s *sequence) fetch(n uint64) (moment, error) {
	for {
		old := s.last.Load()
		last := s.floor(old) + n
		second := moment(last).second()
		bound := s.bound.Load()
		if second >= bound {
			if err := s.reserve(second); err != nil {
				return 0, err
			}
			continue
		}
		if s.last.CompareAndSwap(old, last) {
			if second+renewSeconds >= bound {
				s.renew(second)
			}
			return moment(last - n + 1), nil
		}
	}
}

// floor returns the moment after which the next one comes: the latest, moved to the clock's second if that is later.
func (s *sequence) floor(last uint64) uint64 {
	if second := uint64(s.now().Unix()); second > last>>serialBits {
		return second<<serialBits | last&serialMask
	}
	return last
}

// reserve makes a bound above second durable, if this server may. Where another server has the same number, it first goes above what that has
// given out.
func (s *sequence) reserve(second uint64) error {
	s.reserveMu.Lock()
	defer s.reserveMu.Unlock()
	if s.bound.Load() >= second+reserveSeconds {
		return nil // another fetch was faster
	}
	if err := s.records.mayReserve(s.primary); err != nil {
		return err
	}
	own, others, err := s.records.bounds(s.name)
	if err != nil {
		return err
	}
	switch {
	case others > own:
		second = max(second, others+primary.AheadSeconds)
		s.raise(second)
	case own > s.bound.Load(): // after a start, or since others have told this server of what it has lost
		second = max(second, own)
		s.raise(second)
	}
	return s.setBound(second + reserveSeconds)
}

// mayReserve returns why this server must not give out numbers. Of several with one number only the primary does. One that has never used its
// number finds out first whether another one does.
func (r *records) mayReserve(p *primary.Role) error {
	used, other, err := r.users()
	switch {
	case err != nil:
		return err
	case other != "":
		if _, err := p.Term(); err != nil {
			return fmt.Errorf("another server has the number %d too, the one with -sid %s, and only the primary gives out numbers then: %w",
				r.serverNo, other, err)
		}
	case !used:
		if err := p.Heard(); err != nil {
			return fmt.Errorf("another server may have the number %d too: %w", r.serverNo, err)
		}
	}
	return nil
}

// raise has all numbers from now on come from a second on.
func (s *sequence) raise(second uint64) {
	for {
		old := s.last.Load()
		if old>>serialBits >= second || s.last.CompareAndSwap(old, second<<serialBits) {
			return
		}
	}
}

func (s *sequence) setBound(bound uint64) error {
	if err := s.records.setBound(s.name, bound); err != nil {
		return fmt.Errorf("write the bound of sequence %q: %w", s.name, err)
	}
	s.bound.Store(bound)
	return nil
}

// renew writes the next bound while numbers below the present one are still given out. An error comes back from the fetch that needs
// the bound.
func (s *sequence) renew(second uint64) {
	if !s.renewing.CompareAndSwap(false, true) {
		return
	}
	s.renewals.Go(func() {
		_ = s.reserve(second)
		s.renewing.Store(false)
	})
}

// close puts an exact bound into the records, so that the next process does not run ahead of the clock. fetch is not called any more.
func (s *sequence) close(owed *db.Pending) error {
	s.renewals.Wait()
	used := moment(s.last.Load()).second() + 1
	if used >= s.bound.Load() { // or none was fetched
		return nil
	}
	return s.records.putBound(owed, s.name, used)
}
