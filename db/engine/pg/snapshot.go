package pg

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

// snapshot is a transaction that sees one moment.
type snapshot struct {
	e     *Engine
	db    uint16
	stamp engine.Stamp
	leave func() bool // no longer ends with the engine

	mu sync.Mutex
	c  *pgxpool.Conn // nil: it has ended
}

// Snapshot begins a transaction that sees one moment. The table is locked before that moment, in
// the way of all readers, so that no TRUNCATE comes between; those are not undone for snapshots.
// The log's horizon is taken before too.
func (e *Engine) Snapshot(ctx context.Context, db uint16) (engine.Snapshot, error) {
	if err := e.table(ctx, db); err != nil {
		return nil, err
	}
	s := &snapshot{e: e, db: db}
	if e.meta.Log {
		var err error
		if s.stamp, err = e.horizon(ctx); err != nil {
			return nil, err
		}
	}
	c, err := e.acquire(ctx, e.long)
	if err != nil {
		return nil, err
	}
	for _, text := range []string{
		"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", fmt.Sprintf("LOCK TABLE r%d, claimed IN ACCESS SHARE MODE", db), "SELECT 1",
	} {
		if _, err := c.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol); err != nil {
			return nil, e.done(c, e.long, err, false)
		}
	}
	s.c = c
	s.leave = context.AfterFunc(e.ctx, func() { _ = s.Close() })
	return s, nil
}

func (s *snapshot) Stamp() engine.Stamp { return s.stamp }

// Scan returns a page of the moment. Of several claimed records with a key, and one in the table,
// the newest one counts.
func (s *snapshot) Scan(ctx context.Context, sc engine.Scan) (p engine.Page, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		return p, undone(errEnded)
	}
	sc.DB = s.db
	from := fmt.Sprintf(`(SELECT k, xt, ver, v FROM r%d UNION ALL (SELECT DISTINCT ON (k) k, xt, ver, v FROM claimed c
		WHERE db = %[1]d AND NOT EXISTS (SELECT FROM r%[1]d t WHERE t.k = c.k) ORDER BY k, id DESC))`, s.db)
	p, err = scan(ctx, s.c.Conn(), from, sc)
	if err != nil {
		s.leave()
		err, s.c = s.e.done(s.c, s.e.long, err, false), nil
	}
	return p, err
}

// Count counts the records of the moment.
func (s *snapshot) Count(ctx context.Context) (n int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		return 0, undone(errEnded)
	}
	text := fmt.Sprintf(`SELECT (SELECT count(*) FROM r%d) +
		(SELECT count(DISTINCT k) FROM claimed c WHERE db = %[1]d AND NOT EXISTS (SELECT FROM r%[1]d t WHERE t.k = c.k))`, s.db)
	if err := s.c.QueryRow(ctx, text).Scan(&n); err != nil {
		s.leave()
		err, s.c = s.e.done(s.c, s.e.long, err, false), nil
		return 0, err
	}
	return n, nil
}

// Close ends the transaction.
func (s *snapshot) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		s.leave()
		s.e.rollback(s.c, s.e.long)
		s.c = nil
	}
	return nil
}
