package mem

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

// claimID names a claimed record. Its revision tells it from a later one with the same key.
type claimID struct {
	lane     uint64
	db       uint16
	key      string
	revision uint64
}

type claims struct{ *Server }

// Claims returns the claims as the server sees them.
func (v *Server) Claims() engine.Claims { return claims{v} }

// Take claims a record. It passes over records that somebody is changing.
func (v claims) Take(ctx context.Context, c engine.Claim) (engine.Record, bool, error) {
	r, err := ask(ctx, v.Server, Call{Name: Claim}, func() (engine.Record, error) {
		s := v.store
		s.mu.Lock()
		defer s.mu.Unlock()
		t := s.table(c.DB)
		for _, key := range t.within(string(c.Prefix)) {
			r := t.records[key]
			if key < string(c.From) || engine.Expired(r.XT, v.Now()) || !s.locks.free(owner{}, []engine.Key{r.Key}) {
				continue
			}
			t.remove(key)
			s.claimed[claimID{c.Lane, c.DB, key, r.Revision}] = r
			return copied(r, false), nil
		}
		return engine.Record{}, nil
	})
	return r, r.Revision != 0, err
}

// Finish forgets a claimed record.
func (v claims) Finish(ctx context.Context, lane uint64, rec *engine.Record, update ulog.Update) error {
	return v.endClaim(ctx, lane, rec, func(claimed engine.Record) {
		if _, there := v.store.table(rec.DB).records[string(rec.Key.Key)]; !there {
			v.store.logOne(update)
		}
	})
}

// GiveBack makes a claimed record visible again.
func (v claims) GiveBack(ctx context.Context, lane uint64, rec *engine.Record, xt int64, update ulog.Update) error {
	return v.endClaim(ctx, lane, rec, func(claimed engine.Record) {
		s := v.store
		s.revision++
		claimed.XT, claimed.Revision = xt, s.revision
		s.table(rec.DB).put(claimed)
		s.logOne(update)
	})
}

// endClaim ends a claim, if it has not ended already.
func (v claims) endClaim(ctx context.Context, lane uint64, rec *engine.Record, end func(claimed engine.Record)) error {
	_, err := ask(ctx, v.Server, Call{Name: Claim}, func() (struct{}, error) {
		s := v.store
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.await(ctx, func() bool { return s.locks.free(owner{}, []engine.Key{rec.Key}) }); err != nil {
			return struct{}{}, err
		}
		id := claimID{lane, rec.DB, string(rec.Key.Key), rec.Revision}
		if claimed, ok := s.claimed[id]; ok {
			delete(s.claimed, id)
			end(claimed)
		}
		return struct{}{}, nil
	})
	return err
}

// logOne logs an update that is a group by itself. The caller holds s.mu.
func (s *Store) logOne(u ulog.Update) {
	if s.opts.NoLog {
		return
	}
	at := s.draw(&engine.Group{}, 1)
	s.log.add(engine.Logged{Stamp: at, Updates: cloneUpdates([]ulog.Update{u})})
}

// GiveBackAll makes what a lane has claimed visible.
func (v claims) GiveBackAll(ctx context.Context, lane uint64) (int, error) {
	return ask(ctx, v.Server, Call{Name: Claim}, func() (int, error) {
		s := v.store
		s.mu.Lock()
		defer s.mu.Unlock()
		back := 0
		newest := slices.SortedFunc(maps.Keys(s.claimed), func(a, b claimID) int { return cmp.Compare(b.revision, a.revision) })
		for _, id := range newest {
			if id.lane != lane {
				continue
			}
			r := s.claimed[id]
			delete(s.claimed, id)
			if _, there := s.table(id.db).records[id.key]; !there {
				s.revision++
				r.Revision = s.revision
				s.table(id.db).put(r)
				back++
			}
		}
		return back, nil
	})
}
