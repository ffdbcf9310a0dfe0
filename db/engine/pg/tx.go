package pg

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

var errEnded = errors.New("the transaction has ended")

// tx is a transaction that has a database's lock, and has done nothing yet.
//
// Its owner may take its time, and beats meanwhile. PostgreSQL ends a transaction whose server does
// not beat any more: a server that stands still, as a suspended machine does, would keep all others
// from the database for as long as its connections live.
type tx struct {
	e    *Engine
	c    *pgxpool.Conn
	over func() bool // ends the watch of the context; false: it has ended already

	beats sync.Mutex    // held over a beat
	still chan struct{} // closed when there are no more beats
	once  sync.Once
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
	x := &tx{e: e, c: c, still: make(chan struct{})}
	e.work.Go(x.beat)
	ended, cancel := context.WithCancel(ctx)
	leave := context.AfterFunc(e.ctx, cancel)
	watched := context.AfterFunc(ended, func() {
		leave()
		cancel()
		x.stop()
		e.rollback(c, e.transactions)
	})
	x.over = func() bool {
		mine := watched()
		leave()
		cancel()
		if mine {
			x.stop()
		}
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
		c, err := e.acquire(soon, e.transactions)
		if err != nil {
			enough()
			return nil, err
		}
		begun := false
		idle := fmt.Sprintf("BEGIN; SET LOCAL idle_in_transaction_session_timeout = %d", e.opts.Lease.Milliseconds())
		if _, err = c.Exec(soon, idle, pgx.QueryExecModeSimpleProtocol); err == nil {
			begun = true
			_, err = c.Exec(soon, "SELECT pg_advisory_xact_lock($1, $2)", classDatabase, int(db))
		}
		late := soon.Err() != nil && ctx.Err() == nil
		enough()
		if err == nil {
			return c, nil
		}
		if err = e.abandon(c, e.transactions, err); late {
			e.transactions.Reset() // whoever has forgotten one has forgotten the others
		}
		if !begun || !late {
			return nil, err
		}
	}
}

// beat tells PostgreSQL that the owner lives.
func (x *tx) beat() {
	every := time.NewTicker(x.e.opts.Lease / 4)
	defer every.Stop()
	for {
		select {
		case <-x.still:
			return
		case <-every.C:
		}
		if !x.beatOnce() {
			return
		}
	}
}

// beatOnce beats once. It returns false when there is nothing to beat for.
func (x *tx) beatOnce() bool {
	x.beats.Lock()
	defer x.beats.Unlock()
	select {
	case <-x.still:
		return false
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), x.e.opts.Lease/4)
	defer cancel()
	_, err := x.c.Exec(ctx, "SELECT 1")
	return err == nil // the transaction has ended otherwise, and its commit says so
}

// stop ends the beats. Afterwards the connection is the caller's.
func (x *tx) stop() {
	x.once.Do(func() { close(x.still) })
	x.beats.Lock()
	//lint:ignore SA2001 when the lock is free, the last beat is over
	x.beats.Unlock()
}

// Commit makes a group under the lock.
func (x *tx) Commit(ctx context.Context, g *engine.Group) (engine.Result, error) {
	if !x.over() {
		return engine.Result{}, &engine.Error{Kind: engine.Undone, Err: errEnded}
	}
	whole := *g
	whole.Whole = true
	if whole.Empty() {
		x.e.rollback(x.c, x.e.transactions)
		return engine.Result{}, nil
	}
	s, err := x.e.statement(ctx, &whole)
	if err != nil {
		x.e.rollback(x.c, x.e.transactions)
		return engine.Result{}, err
	}
	x.e.written(g.ID)
	return x.e.conclude(ctx, x.c, x.e.transactions, nil, s)
}

// Abort ends the lock, unless Commit has begun.
func (x *tx) Abort() {
	if x.over() {
		x.e.rollback(x.c, x.e.transactions)
	}
}
