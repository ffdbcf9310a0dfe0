package mem

import (
	"context"
	"time"

	"gotycoon/db/engine"
)

// lease is a lease, held or not.
type lease struct {
	holder *Server // nil: nobody
	term   uint64  // of the last holder
	ends   time.Time
	making int // guarded groups between stamp and commit: nobody else becomes holder meanwhile
}

type leases struct{ *Server }

// Leases returns the leases as the server sees them.
func (v *Server) Leases() engine.Leases { return leases{v} }

// holds reports whether a term is the present one. The caller holds s.mu.
func (s *Store) holds(t *engine.Term) bool {
	l := s.leases[t.Name]
	return l != nil && l.holder != nil && l.term == t.Number && time.Now().Before(l.ends)
}

// guarded notes that a group with a guard begins or ends being made.
func (s *Store) guarded(g *engine.Group, n int) {
	if g.Guard != nil {
		s.leases[g.Guard.Name].making += n
	}
}

// Hold waits for a lease, and renews it three times while it lasts.
func (v leases) Hold(ctx context.Context, name string) (engine.Term, <-chan struct{}, error) {
	for {
		asked := time.Now()
		type answer struct {
			term  uint64
			ends  time.Time // of the lease that somebody else has
			freed chan struct{}
		}
		a, err := ask(ctx, v.Server, Call{Name: Lease}, func() (a answer, err error) {
			a.freed = v.store.freedChannel()
			a.term, a.ends = v.store.grant(v.Server, name)
			return a, nil
		})
		if err != nil {
			return engine.Term{}, nil, err
		}
		if a.term > 0 {
			lost := make(chan struct{})
			v.work.Go(func() { v.keep(ctx, name, a.term, asked, lost) })
			return engine.Term{Name: name, Number: a.term}, lost, nil
		}
		timer := time.NewTimer(time.Until(a.ends))
		select {
		case <-a.freed:
		case <-timer.C:
		case <-ctx.Done():
		case <-v.ctx.Done():
			timer.Stop()
			return engine.Term{}, nil, &engine.Error{Kind: engine.Undone, Err: v.ctx.Err()}
		}
		timer.Stop()
	}
}

func (s *Store) freedChannel() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freed
}

// grant gives a lease to a server, or returns until when somebody else has it.
func (s *Store) grant(v *Server, name string) (term uint64, ends time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[name]
	if l == nil {
		l = &lease{}
		s.leases[name] = l
	}
	switch {
	case l.holder != nil && time.Now().Before(l.ends):
		return 0, l.ends
	case l.making > 0:
		return 0, time.Now().Add(s.opts.Lease)
	}
	l.holder, l.ends = v, time.Now().Add(s.opts.Lease)
	l.term++
	return l.term, l.ends
}

// keep renews a lease until ctx or the server ends, and gives it back then. It closes lost when
// two thirds of the lease have passed since the last renewal began that succeeded.
func (v leases) keep(ctx context.Context, name string, term uint64, renewed time.Time, lost chan struct{}) {
	defer close(lost)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.ctx, cancel)()
	lasts := v.store.opts.Lease
	for {
		if pause(ctx, lasts/3) != nil {
			break
		}
		began := time.Now()
		within, cancel := context.WithDeadline(ctx, renewed.Add(lasts*2/3))
		held, err := ask(within, v.Server, Call{Name: Lease}, func() (bool, error) { return v.store.renew(name, term), nil })
		cancel()
		if err == nil && held {
			renewed = began
		} else if err == nil || time.Since(renewed) >= lasts*2/3 {
			return
		}
	}
	v.store.endLease(name, term)
}

// renew makes a lease last longer, if it is still the holder's.
func (s *Store) renew(name string, term uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.holds(&engine.Term{Name: name, Number: term}) {
		return false
	}
	s.leases[name].ends = time.Now().Add(s.opts.Lease)
	return true
}

// endLease gives a lease back, if it is still the holder's.
func (s *Store) endLease(name string, term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds(&engine.Term{Name: name, Number: term}) {
		s.leases[name].holder = nil
		s.free()
	}
}

// Holder returns who has a lease.
func (v leases) Holder(ctx context.Context, name string) (addr string, term uint64, err error) {
	l, err := ask(ctx, v.Server, Call{Name: Lease}, func() (lease, error) {
		v.store.mu.Lock()
		defer v.store.mu.Unlock()
		if l := v.store.leases[name]; l != nil {
			return *l, nil
		}
		return lease{}, nil
	})
	if l.holder != nil && time.Now().Before(l.ends) {
		addr = l.holder.addr
	}
	return addr, l.term, err
}
