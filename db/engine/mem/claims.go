package mem

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

// claimed is a record that is claimed, or the note that a Take was not made and never will be.
type claimed struct {
	engine.Record
	made bool
}

type claims struct{ *Server }

// Claims returns the claims as the server sees them.
func (v *Server) Claims() engine.Claims { return claims{v} }

// errBusy is for a claim in a database that somebody has alone.
var errBusy error = &engine.Error{Kind: engine.Undone, Err: errors.New("a transaction has the database")}

// Take claims a record, as far as the faults let it.
func (v claims) Take(ctx context.Context, id engine.ClaimID, c engine.Claim) (engine.Record, bool, error) {
	f := v.fault(Call{Name: Take})
	if err := pause(ctx, f.Delay); err != nil {
		return engine.Record{}, false, &engine.Error{Kind: engine.Unknown, Away: true, Err: err}
	}
	switch {
	case f.Kind == engine.Unknown && f.Made && f.Late > 0:
		c.Prefix, c.From = slices.Clone(c.Prefix), slices.Clone(c.From)
		v.work.Go(func() {
			if pause(v.ctx, f.Late) == nil {
				_, _ = v.take(id, c)
			}
		})
		return engine.Record{}, false, f.err()
	case f.Kind == engine.Unknown && f.Made:
		_, _ = v.take(id, c)
		return engine.Record{}, false, f.err()
	case f.Kind != 0:
		return engine.Record{}, false, f.err()
	}
	r, err := v.take(id, c)
	if pause(ctx, f.Answer) != nil {
		return engine.Record{}, false, &engine.Error{Kind: engine.Unknown, Away: true, Err: ctx.Err()}
	}
	return r, err == nil && r.Revision != 0, err
}

// take claims a record. It passes over records that somebody is changing.
func (v claims) take(id engine.ClaimID, c engine.Claim) (engine.Record, error) {
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	switch _, known := s.claimed[id]; {
	case known:
		return engine.Record{}, engine.ErrPassed
	case s.busy(c.DB):
		return engine.Record{}, errBusy
	case !s.holds(&id.By):
		return engine.Record{}, engine.ErrFenced
	}
	t := s.table(c.DB)
	for _, key := range t.within(string(c.Prefix)) {
		r := t.records[key]
		if key < string(c.From) || engine.Expired(r.XT, v.Now()) || !s.locks.free(owner{}, []engine.Key{r.Key}) {
			continue
		}
		t.remove(key)
		s.claimed[id] = claimed{r, true}
		return copied(r, false), nil
	}
	return engine.Record{}, nil
}

// busy reports whether somebody has a database alone. The caller holds s.mu.
func (s *Store) busy(db uint16) bool {
	_, locked := s.locks.dbs[db]
	return locked
}

// Settle tells what has become of a Take.
func (v claims) Settle(ctx context.Context, id engine.ClaimID) (engine.Record, bool, error) {
	c, err := ask(ctx, v.Server, Call{Name: Claim}, func() (claimed, error) {
		v.store.mu.Lock()
		defer v.store.mu.Unlock()
		c, known := v.store.claimed[id]
		if !known {
			v.store.claimed[id] = claimed{}
		}
		return claimed{copied(c.Record, false), c.made}, nil
	})
	return c.Record, c.made, err
}

// end makes a call that ends a claim, of which end says how. Without a claim missing is called. The
// caller of either holds s.mu.
func (v claims) end(ctx context.Context, id engine.ClaimID, key engine.Key, end func(c engine.Record) bool, missing func() error) (done bool, err error) {
	return ask(ctx, v.Server, Call{Name: Claim}, func() (bool, error) {
		s := v.store
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.busy(key.DB) {
			return false, errBusy
		}
		if err := s.await(ctx, func() bool { return s.locks.free(owner{}, []engine.Key{key}) }); err != nil {
			return false, err
		}
		c := s.claimed[id]
		if !c.made {
			return true, missing()
		}
		if !end(c.Record) {
			return false, nil
		}
		delete(s.claimed, id)
		return true, nil
	})
}

// Finish forgets a claimed record.
func (v claims) Finish(ctx context.Context, c *engine.Claimed, update ulog.Update) error {
	s := v.store
	if c.End == (engine.GroupID{}) {
		s.mu.Lock()
		s.end++
		c.End.Seq = s.end
		s.mu.Unlock()
	}
	end := c.End
	_, err := v.end(ctx, c.ID, engine.Key{DB: update.DBID, Key: update.Key}, func(r engine.Record) bool {
		if _, there := s.table(r.DB).records[string(r.Key.Key)]; !there {
			s.logOne(update)
		}
		s.ends[end] = true
		return true
	}, func() error {
		if s.ends[end] {
			return nil
		}
		return engine.ErrUnclaimed
	})
	return err
}

// GiveBack makes a claimed record visible again.
func (v claims) GiveBack(ctx context.Context, id engine.ClaimID, update ulog.Update) (taken bool, err error) {
	done, err := v.end(ctx, id, engine.Key{DB: update.DBID, Key: update.Key}, func(c engine.Record) bool {
		s := v.store
		if _, there := s.table(c.DB).records[string(update.Key)]; there {
			return false
		}
		s.revision++
		c.Key.Key, c.XT, c.Revision = slices.Clone(update.Key), engine.Forever, s.revision
		s.table(c.DB).put(c)
		s.logOne(update)
		return true
	}, func() error { return nil })
	return err == nil && !done, err
}

// logOne logs an update that is a group by itself. The caller holds s.mu.
func (s *Store) logOne(u ulog.Update) {
	if s.opts.NoLog {
		return
	}
	at := s.draw(&engine.Group{}, 1)
	s.log.add(engine.Logged{Stamp: at, Updates: cloneUpdates([]ulog.Update{u})})
}

// Abandoned returns claims whose terms have ended.
func (v claims) Abandoned(ctx context.Context, limit, size int) ([]engine.Claimed, error) {
	return ask(ctx, v.Server, Call{Name: Claim}, func() (all []engine.Claimed, err error) {
		s := v.store
		s.mu.Lock()
		defer s.mu.Unlock()
		bytes := 0
		for id, c := range s.claimed {
			switch {
			case s.holds(&id.By):
			case !c.made:
				delete(s.claimed, id)
			case len(all) < limit && bytes < size:
				all = append(all, engine.Claimed{ID: id, Record: copied(c.Record, false)})
				bytes += len(c.Value)
			}
		}
		return all, nil
	})
}

// Waiting looks for live records.
func (v claims) Waiting(ctx context.Context, db uint16, prefixes [][]byte) ([]bool, error) {
	return ask(ctx, v.Server, Call{Name: Scan}, func() ([]bool, error) {
		v.store.mu.Lock()
		defer v.store.mu.Unlock()
		there := make([]bool, len(prefixes))
		for key, r := range v.store.table(db).records {
			for i, p := range prefixes {
				there[i] = there[i] || strings.HasPrefix(key, string(p)) && !engine.Expired(r.XT, v.Now())
			}
		}
		return there, nil
	})
}
