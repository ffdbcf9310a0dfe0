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
}

// query is a statement of a batch.
type query struct {
	text string
	args []any
}

// hold locks keys for a group and returns their records.
func (e *Engine) hold(ctx context.Context, keys []engine.Key, id engine.GroupID) ([]engine.Record, error) {
	e.takeHold(id).release()
	var locks, holds, frees []query
	for from := 0; from < len(keys); {
		db, upTo := keys[from].DB, from
		var names [][]byte
		for ; upTo < len(keys) && keys[upTo].DB == db; upTo++ {
			names = append(names, notNull(keys[upTo].Key))
		}
		// the database first: who has it alone must not wait for keys of ours
		locks = append(locks, query{"SELECT pg_advisory_xact_lock_shared($1, $2)", []any{classDatabase, int(db)}})
		holds = append(holds, query{fmt.Sprintf("SELECT hold_%d($1)", db), []any{names}})
		copied := make([][]byte, len(names))
		for i, name := range names {
			copied[i] = append([]byte{}, name...)
		}
		frees = append(frees, query{fmt.Sprintf("SELECT free_%d($1)", db), []any{copied}})
		from = upTo
	}
	c, err := e.lanes.Acquire(ctx)
	if err != nil {
		return nil, mean(err, false)
	}
	var recs []engine.Record
	err = func() error {
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		b.Queue(fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", e.opts.Hold.Milliseconds()+1000))
		queue(b, locks, holds)
		if err := c.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		rows, err := c.Query(ctx, readText(keys), readArgs(keys)...)
		if err != nil {
			return err
		}
		recs, err = collect(rows, keys)
		return err
	}()
	if err != nil {
		return nil, e.done(c, e.lanes, err, false)
	}
	h := &hold{e: e, id: id, c: c, frees: frees}
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

func queue(b *pgx.Batch, lists ...[]query) {
	for _, l := range lists {
		for _, q := range l {
			b.Queue(q.text, q.args...)
		}
	}
}

// takeHold takes what a lane holds. If that is not for the group, it ends here, and nil is returned.
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
		h.once.Do(func() { h.e.rollback(h.c, h.e.lanes) })
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
	h.once.Do(func() { r, err = h.e.conclude(ctx, h.c, h.e.lanes, h.frees, s) })
	return r, err
}

// conclude makes a group in a transaction that has begun, and commits it, in one round trip.
func (e *Engine) conclude(ctx context.Context, c *pgxpool.Conn, pool *pgxpool.Pool, before []query, s *statement) (engine.Result, error) {
	b := &pgx.Batch{}
	queue(b, before, []query{{s.text, s.args}})
	b.Queue("COMMIT")
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
