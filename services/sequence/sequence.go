package sequence

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db"
	"gotycoon/services/leader"
)

const (
	reserveSeconds = 4 // a new bound is this far ahead of the second in use
	renewSeconds   = 2 // the next bound is written when this few seconds below the bound are left
)

// sequence gives out moments, each greater than all before it, in this process and in earlier ones.
//
// The second of a moment is the clock's, but it never goes back. The serial grows from number to
// number; when it overflows, the second grows by one. A bound above the second is on the disk
// before the second is used, and a process starts at the bound that it finds. So neither a restart
// within a second nor a clock that was set back repeats a number.
//
// Example: the clock says 1000. The bound 1004 is written, then numbers of the seconds 1000 to 1003
// may be given out. At second 1002 the bound 1006 is written in the background. The process crashes
// at 1003, or the clock is set back: the next process reads 1006 and begins there, above every
// number that may have been given out. A clean end writes the exact bound, so that the next process
// need not run ahead of the clock.
//
// Servers with the same server number share the number space. Of these servers only the primary
// gives out numbers (mayReserve), of the members of a cluster in any case, and after a change of
// the primary the new primary begins leader.AheadSeconds above the greatest bound of the others.
type sequence struct {
	name    string
	records *records
	primary *leader.Role
	now     func() time.Time

	last  atomic.Uint64 // the last moment given out
	bound atomic.Uint64 // durable: all seconds given out are below it

	reserveMu sync.Mutex // held over the writing of a bound
	renewing  atomic.Bool
	renewals  sync.WaitGroup // the goroutine that writes the next bound, at most one
}

func openSequence(name string, r *records, p *leader.Role, now func() time.Time) (*sequence, error) {
	own, _, err := r.bounds(name)
	if err != nil {
		return nil, err
	}
	// The bound stays 0, so that the first fetch reserves its second anew.
	s := &sequence{name: name, records: r, primary: p, now: now}
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
			// This comes last: a cluster ends a primary before the disk lets it call Yield.
			if err := s.primary.Outvoted(); err != nil {
				return 0, err
			}
			if second+renewSeconds >= bound {
				s.renew(second)
			}
			return moment(last - n + 1), nil
		}
	}
}

// floor returns the moment after which the next one comes: the last moment, moved to the second of
// the clock if that is later.
func (s *sequence) floor(last uint64) uint64 {
	if second := uint64(s.now().Unix()); second > last>>serialBits {
		return second<<serialBits | last&serialMask
	}
	return last
}

// reserve makes a bound above second durable, if this server may give out numbers. Where other
// servers have used the same server number, the sequence first moves above all that they may have
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
		second = max(second, others+leader.AheadSeconds)
		s.raise(second)
	// This is the first reservation after a start. Or this server has lost data, and leader.regain
	// has raised the record above the bound that peers remember.
	case own > s.bound.Load():
		second = max(second, own)
		s.raise(second)
	}
	return s.setBound(second + reserveSeconds)
}

// mayReserve returns an error if this server must not give out numbers. Among servers with the same
// server number only the primary may. A server that has never used its number first waits to hear
// from its master whether another server uses it. Of the members of a cluster only the primary may:
// what another one wrote, nobody else would have.
func (r *records) mayReserve(p *leader.Role) error {
	if err := p.Outvoted(); err != nil {
		return err
	}
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

// raise moves the sequence so that all further numbers are of this second or a later one.
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

// renew writes the next bound in the background while numbers below the present bound are still
// given out. It drops an error: the fetch that needs the bound tries again and reports it.
func (s *sequence) renew(second uint64) {
	if !s.renewing.CompareAndSwap(false, true) {
		return
	}
	s.renewals.Go(func() {
		_ = s.reserve(second)
		s.renewing.Store(false)
	})
}

// close records the exact bound, so that the next process does not run ahead of the clock. The
// caller has made sure that fetch is not called any more.
func (s *sequence) close(owed *db.Pending) error {
	s.renewals.Wait()
	if s.primary.Outvoted() != nil {
		return nil // it would be this server's alone
	}
	used := moment(s.last.Load()).second() + 1
	if used >= s.bound.Load() { // also when nothing was fetched: then the bound is 0
		return nil
	}
	return s.records.putBound(owed, s.name, used)
}
