package db

import (
	"context"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// take claims the first record whose key begins with prefix and is not before from. In an engine a
// claimed record has left its database, for all servers.
func (s *shared) take(prefix, from []byte) (*engine.Record, error) {
	claims := s.engine.Claims()
	if claims == nil {
		return nil, dberr.ErrNotImplemented
	}
	lane, err := s.lane()
	if err != nil {
		return nil, err
	}
	type taken struct {
		engine.Record
		found bool
	}
	rec, err := gather.Ask(context.Background(), s.groups, func(ctx context.Context) (t taken, err error) {
		t.Record, t.found, err = claims.Take(ctx, engine.Claim{Lane: lane, DB: s.db.index, Prefix: prefix, From: from})
		return t, err
	})
	switch {
	case err != nil:
		return nil, engineError(err)
	case !rec.found:
		return nil, dberr.ErrNoRecord
	}
	return &rec.Record, nil
}

// lane returns the number under which this server's claims of the database are known, which is
// asked for at the first claim.
func (s *shared) lane() (uint64, error) {
	if n := s.claims.Load(); n != 0 {
		return n, nil
	}
	n, err := gather.Ask(context.Background(), s.groups, s.engine.Lane)
	if err != nil {
		return 0, engineError(err)
	}
	s.claims.CompareAndSwap(0, n)
	return s.claims.Load(), nil
}

// finish forgets a claimed record.
func (s *shared) finish(rec *engine.Record) error {
	u := ulog.Update{SID: s.db.sid, DBID: s.db.index, Op: ulog.OpRemove, Key: rec.Key.Key}
	return s.end(func(ctx context.Context, claims engine.Claims, lane uint64) error {
		return claims.Finish(ctx, lane, rec, u)
	})
}

// giveBack makes a claimed record visible again, without an expiration time.
func (s *shared) giveBack(rec *engine.Record) error {
	stored := append(record.AppendXT(nil, record.MaxXT), rec.Value...)
	u := ulog.Update{SID: s.db.sid, DBID: s.db.index, Op: ulog.OpSet, Key: rec.Key.Key, Value: stored}
	err := s.end(func(ctx context.Context, claims engine.Claims, lane uint64) error {
		return claims.GiveBack(ctx, lane, rec, record.MaxXT, u)
	})
	if w := s.db.watch.Load(); err == nil && w.opts.News != nil {
		w.opts.News(rec.Key.Key)
	}
	return err
}

// end ends a claim. What ends one may be repeated, so a call without an answer is.
func (s *shared) end(end func(ctx context.Context, claims engine.Claims, lane uint64) error) error {
	_, err := gather.Ask(context.Background(), s.groups, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, end(ctx, s.engine.Claims(), s.claims.Load())
	})
	return engineError(err)
}
