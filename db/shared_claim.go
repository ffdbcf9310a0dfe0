package db

import (
	"context"
	"errors"
	"fmt"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// errNoClaims: the engine has no claims.
var errNoClaims error = &dberr.Error{Code: dberr.NotImplemented, Message: "the engine cannot keep claims of records"}

// take claims the first record whose key begins with prefix and is not before from. A claim whose
// answer was lost is settled before the next attempt: it may have claimed a record, which a
// repetition would leave hidden.
func (s *shared) take(p *Pending, prefix, from []byte) (*engine.Claimed, error) {
	claims := s.engine.Claims()
	if claims == nil {
		return nil, errNoClaims
	}
	if err := s.admit(p); err != nil {
		return nil, err
	}
	var id engine.ClaimID
	open := false // what has become of id is not known
	var rec engine.Record
	found, err := gather.Ask(context.Background(), s.groups, func(ctx context.Context) (found bool, err error) {
		if open {
			if rec, found, err = claims.Settle(ctx, id); err != nil || found {
				return found, err
			}
			open = false
		}
		if id, err = s.claims.next(ctx); err != nil {
			return false, err
		}
		rec, found, err = claims.Take(ctx, id, engine.Claim{DB: s.db.index, Prefix: prefix, From: from})
		if errors.Is(err, engine.ErrFenced) {
			s.claims.over(id.By)
			err = &engine.Error{Kind: engine.Undone, Err: err}
		}
		open = err != nil && engine.KindOf(err) == engine.Unknown
		return found, err
	})
	switch {
	case err != nil:
		if open {
			s.claims.owe(debt{of: s, id: id})
		}
		return nil, engineError(err)
	case !found:
		return nil, dberr.ErrNoRecord
	}
	if size := len(rec.Value); size >= store.LargeValue {
		if _, err := p.Large(size); err != nil { // the value goes at once, and is read again to be given back
			s.claims.owe(debt{of: s, id: id})
			return nil, systemError(err)
		}
	}
	return &engine.Claimed{ID: id, Record: rec}, nil
}

// finish forgets a claimed record. A call without an answer is repeated: the engine knows whether
// the first one had an effect. A client that was told ErrNoAnswer may call finish again with the
// same claim, and hears what has become of it. When the engine remembers the first call no more, it
// hears ErrNoRecord: the claim has ended, one way or the other.
func (s *shared) finish(p *Pending, c *engine.Claimed) error {
	if err := s.db.writable(c.Key.Key); err != nil {
		return err
	}
	if err := s.admit(p); err != nil {
		return err
	}
	u := ulog.Update{SID: s.db.sid, DBID: s.db.index, Op: ulog.OpRemove, Key: c.Key.Key}
	open := false // an answer was lost, and the claim may have ended with it
	_, err := gather.Ask(context.Background(), s.groups, func(ctx context.Context) (struct{}, error) {
		err := s.engine.Claims().Finish(ctx, c, u)
		open = open || engine.IsAway(err)
		return struct{}{}, err
	})
	switch {
	case open && err != nil: // also ErrUnclaimed: the engine may have forgotten a former attempt
		return engineError(gather.ErrNoAnswer)
	case errors.Is(err, engine.ErrUnclaimed):
		return dberr.ErrNoRecord
	}
	return engineError(err)
}

// giveBack makes a claimed record visible again. What the engine does not hear now it will hear
// later.
func (s *shared) giveBack(p *Pending, c *engine.Claimed) {
	err := s.admit(p)
	if err == nil {
		err = s.back(c)
	}
	if err != nil {
		s.claims.owe(debt{s, c.ID, c})
	}
}

// back makes a claimed record visible again, without an expiration time: under its key, or where
// that has a record by now, under the next one behind it that has none. It does not wait for who
// has the database alone: claims of other databases would wait behind it.
func (s *shared) back(c *engine.Claimed) error {
	stored := append(s.appendXT(nil, record.MaxXT), c.Value...)
	u := ulog.Update{SID: s.db.sid, DBID: s.db.index, Op: ulog.OpSet, Key: c.Key.Key, Value: stored}
	for n := 1; ; n++ {
		var busy error
		taken, err := gather.Ask(context.Background(), s.groups, func(ctx context.Context) (bool, error) {
			taken, err := s.engine.Claims().GiveBack(ctx, c.ID, u)
			if busy = nil; engine.KindOf(err) == engine.Undone && !engine.IsAway(err) {
				busy, err = err, nil
			}
			return taken, err
		})
		switch {
		case busy != nil:
			return busy
		case err != nil:
			return err
		case !taken:
			if w := s.db.watch.Load(); w != nil {
				w.committed([]ulog.Update{u}, 0)
			}
			return nil
		}
		// the blank behind a queue's name stays, for its keys are shorter than the longest ones
		behind := fmt.Sprintf("+%d", n)
		kept := min(len(c.Key.Key), s.db.maxKey-len(behind))
		u.Key = append(c.Key.Key[:kept:kept], behind...)
	}
}

// claimable reports for each prefix whether there is a live record.
func (s *shared) claimable(prefixes [][]byte) ([]bool, error) {
	there, err := gather.Ask(context.Background(), s.groups, func(ctx context.Context) ([]bool, error) {
		return s.engine.Claims().Waiting(ctx, s.db.index, prefixes)
	})
	return there, engineError(err)
}
