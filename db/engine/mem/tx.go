package mem

import (
	"context"
	"errors"

	"gotycoon/db/engine"
)

var errEnded = errors.New("the transaction has ended")

// Begin locks a database.
func (v *Server) Begin(ctx context.Context, db uint16) (engine.Tx, error) {
	return ask(ctx, v, Call{Name: Begin}, func() (engine.Tx, error) {
		s := v.store
		s.mu.Lock()
		defer s.mu.Unlock()
		s.transaction++
		x := &tx{v: v, db: db, by: owner{seq: s.transaction}}
		if err := s.await(ctx, func() bool { return s.locks.unused(x.by, db) }); err != nil {
			return nil, err
		}
		s.locks.dbs[db] = x.by
		x.over = context.AfterFunc(ctx, x.unlock)
		return x, nil
	})
}

// tx is the lock of a database.
type tx struct {
	v    *Server
	db   uint16
	by   owner
	over func() bool // ends the watch of the context; false: it has ended already
}

// Commit writes a group under the lock.
func (x *tx) Commit(ctx context.Context, g *engine.Group) (engine.Result, error) {
	if !x.over() { // from here on the lock lasts until nothing of the group is left to be done
		return engine.Result{}, &engine.Error{Kind: engine.Undone, Err: errEnded}
	}
	whole := *g
	whole.Whole = true
	return x.v.write(ctx, &whole, x.by, x.unlock)
}

// Abort ends the lock, unless Commit has begun.
func (x *tx) Abort() {
	if x.over() {
		x.unlock()
	}
}

func (x *tx) unlock() {
	s := x.v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks.dbs[x.db] == x.by {
		delete(s.locks.dbs, x.db)
		s.free()
	}
}
