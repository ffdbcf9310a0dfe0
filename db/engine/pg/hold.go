package pg

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

// hold is a transaction that has locked keys for a lane's next group. PostgreSQL ends it when we
// cannot: its session is then idle for longer than a hold lasts.
type hold struct {
	e     *Engine
	id    engine.GroupID
	frees []query // remove what stands for absent records
	timer *time.Timer

	once sync.Once
	c    *pgxpool.Conn
	pool *pgxpool.Pool // of c
}

// query is a statement of a batch.
type query struct {
	text string
	args []any
}

// hold locks keys for a group and returns their records. Who waits for a database does so on a
// connection that no lane needs.
func (e *Engine) hold(ctx context.Context, keys []engine.Key, how engine.Reading) ([]engine.Record, error) {
	id := how.Hold
	e.takeHold(id).release()
	pool := e.waiting
	if how.NoWait {
		pool = e.lanes
	}
	var locks, holds, frees []query
	var dbs []uint16
	for from := 0; from < len(keys); {
		db, upTo := keys[from].DB, from
		var names [][]byte
		for ; upTo < len(keys) && keys[upTo].DB == db; upTo++ {
			names = append(names, notNull(keys[upTo].Key))
		}
		// the database first: who has it alone must not wait for keys of ours
		if how.NoWait {
			text := "SELECT CASE WHEN pg_try_advisory_xact_lock_shared($1, $2) THEN hold_%d($3) END"
			holds = append(holds, query{fmt.Sprintf(text, db), []any{classDatabase, int(db), names}})
		} else {
			locks = append(locks, query{"SELECT pg_advisory_xact_lock_shared($1, $2)", []any{classDatabase, int(db)}})
			holds = append(holds, query{fmt.Sprintf("SELECT hold_%d($1)", db), []any{names}})
		}
		dbs = append(dbs, db)
		copied := make([][]byte, len(names))
		for i, name := range names {
			copied[i] = append([]byte{}, name...)
		}
		frees = append(frees, query{fmt.Sprintf("SELECT free_%d($1)", db), []any{copied}})
		from = upTo
	}
	c, err := pool.Acquire(ctx)
	if err != nil {
		return nil, mean(err, false)
	}
	var recs []engine.Record
	err = func() error {
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		b.Queue(fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", e.opts.Hold.Milliseconds()+1000))
		queue(b, locks, holds)
		if err := lockKeys(c.SendBatch(ctx, b), 2+len(locks), dbs); err != nil {
			return err
		}
		rows, err := c.Query(ctx, readText(keys, how.Most), readArgs(keys, how.Most)...)
		if err != nil {
			return err
		}
		recs, err = collect(rows, keys)
		return err
	}()
	if _, locked := engine.IsLocked(err); locked {
		e.rollback(c, pool)
		return nil, err
	}
	if err != nil {
		return nil, e.abandon(c, pool, err)
	}
	h := &hold{e: e, id: id, c: c, pool: pool, frees: frees}
	e.holdsMu.Lock()
	defer e.holdsMu.Unlock()
	e.holds[id.Lane] = h
	h.timer = time.AfterFunc(e.opts.Hold, func() {
		e.holdsMu.Lock()
		mine := e.holds[id.Lane] == h
		if mine {
			delete(e.holds, id.Lane)
		}
		e.holdsMu.Unlock()
		if mine {
			h.release()
		}
	})
	return recs, nil
}

// lockKeys reads the answers of statements that lock the keys of databases, behind n others.
func lockKeys(answers pgx.BatchResults, n int, dbs []uint16) (err error) {
	for i := 0; i < n && err == nil; i++ {
		_, err = answers.Exec()
	}
	for i := 0; i < len(dbs) && err == nil; i++ {
		var revisions []int64 // NULL: somebody has the database alone
		if err = answers.QueryRow().Scan(&revisions); err == nil && revisions == nil {
			err = engine.Locked(dbs[i])
		}
	}
	if closing := answers.Close(); err == nil {
		err = closing
	}
	return err
}

// abandon gives a connection back that has failed while it waited for locks. It returns when those
// that it had are free, or after a second.
func (e *Engine) abandon(c *pgxpool.Conn, pool *pgxpool.Pool, err error) error {
	conn := c.Conn().PgConn()
	err = e.done(c, pool, err, false)
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-conn.CleanupDone():
	case <-timer.C:
	}
	return err
}

func queue(b *pgx.Batch, lists ...[]query) {
	for _, l := range lists {
		for _, q := range l {
			b.Queue(q.text, q.args...)
		}
	}
}

// takeHold takes what a lane holds. If that is not for the group, it ends here, and nil is
// returned.
func (e *Engine) takeHold(id engine.GroupID) *hold {
	e.holdsMu.Lock()
	h := e.holds[id.Lane]
	delete(e.holds, id.Lane)
	e.holdsMu.Unlock()
	if h == nil {
		return nil
	}
	h.timer.Stop()
	if h.id != id {
		h.release()
		return nil
	}
	return h
}

// release ends a hold; nil is one that has ended.
func (h *hold) release() {
	if h != nil {
		h.once.Do(func() { h.e.rollback(h.c, h.pool) })
	}
}

// rollback ends a transaction and gives its connection back. It takes a moment only: what cannot be
// rolled back is closed.
func (e *Engine) rollback(c *pgxpool.Conn, pool *pgxpool.Pool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := c.Exec(ctx, "ROLLBACK")
	_ = e.done(c, pool, err, false)
}

// write makes the group in the transaction that holds its keys, and commits.
func (h *hold) write(ctx context.Context, s *statement) (r engine.Result, err error) {
	h.once.Do(func() { r, err = h.e.conclude(ctx, h.c, h.pool, h.frees, s) })
	return r, err
}

// conclude makes a group in a transaction that has begun, and commits it, in one round trip.
func (e *Engine) conclude(ctx context.Context, c *pgxpool.Conn, pool *pgxpool.Pool, before []query, s *statement) (engine.Result, error) {
	b := &pgx.Batch{}
	queue(b, before, []query{{s.text, s.args}})
	b.Queue("COMMIT")
	committing(c, true)
	answers := c.SendBatch(ctx, b)
	err := func() error {
		for range before {
			if _, err := answers.Exec(); err != nil {
				return err
			}
		}
		if err := s.scan(answers.QueryRow()); err != nil {
			return err
		}
		_, err := answers.Exec()
		return err
	}()
	if closing := answers.Close(); err == nil {
		err = closing
	}
	return s.answer(e.done(c, pool, err, true))
}
