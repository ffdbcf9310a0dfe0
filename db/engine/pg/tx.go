package pg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

var errEnded = errors.New("the transaction has ended")

// tx is a transaction that has a database's lock, and has done nothing yet.
type tx struct {
	e    *Engine
	c    *pgxpool.Conn
	over func() bool // ends the watch of the context; false: it has ended already
}

// Begin locks a database for one writer.
func (e *Engine) Begin(ctx context.Context, db uint16) (engine.Tx, error) {
	if err := e.table(ctx, db); err != nil {
		return nil, err
	}
	c, err := e.locked(ctx, db)
	if err != nil {
		return nil, err
	}
	x := &tx{e: e, c: c}
	ended, cancel := context.WithCancel(ctx)
	leave := context.AfterFunc(e.ctx, cancel)
	watched := context.AfterFunc(ended, func() {
		leave()
		cancel()
		e.rollback(c, e.others)
	})
	x.over = func() bool {
		mine := watched()
		leave()
		cancel()
		return mine
	}
	return x, nil
}

// locked returns a connection whose transaction has a database's lock. Nobody holds up a connection
// or a BEGIN; another transaction may hold the lock for as long as it likes, but a connection that
// was forgotten on its way would wait for ever, so another one takes its place now and then.
func (e *Engine) locked(ctx context.Context, db uint16) (*pgxpool.Conn, error) {
	for {
		soon, enough := context.WithTimeout(ctx, e.opts.Hold)
		c, err := e.others.Acquire(soon)
		if err != nil {
			enough()
			return nil, mean(err, false)
		}
		begun := false
		if _, err = c.Exec(soon, "BEGIN"); err == nil {
			begun = true
			_, err = c.Exec(soon, "SELECT pg_advisory_xact_lock($1, $2)", classDatabase, int(db))
		}
		late := soon.Err() != nil && ctx.Err() == nil
		enough()
		if err == nil {
			return c, nil
		}
		if err = e.abandon(c, e.others, err); late {
			e.others.Reset() // whoever has forgotten one has forgotten the others
		}
		if !begun || !late {
			return nil, err
		}
	}
}

// Commit makes a group under the lock.
func (x *tx) Commit(ctx context.Context, g *engine.Group) (engine.Result, error) {
	if !x.over() {
		return engine.Result{}, &engine.Error{Kind: engine.Undone, Err: errEnded}
	}
	whole := *g
	whole.Whole = true
	if whole.Empty() {
		x.e.rollback(x.c, x.e.others)
		return engine.Result{}, nil
	}
	s, err := x.e.statement(ctx, &whole)
	if err != nil {
		x.e.rollback(x.c, x.e.others)
		return engine.Result{}, err
	}
	return x.e.conclude(ctx, x.c, x.e.others, nil, s)
}

// Abort ends the lock, unless Commit has begun.
func (x *tx) Abort() {
	if x.over() {
		x.e.rollback(x.c, x.e.others)
	}
}
