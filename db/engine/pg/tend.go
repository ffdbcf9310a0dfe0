package pg

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// clock is PostgreSQL's, by ours: what it said last, and how much time has passed since. Whoever
// sets the clock of this machine changes nothing.
type clock struct{ last atomic.Pointer[moment] }

type moment struct {
	micros int64 // of PostgreSQL
	heard  time.Time
}

func (k *clock) set(ctx context.Context, c *pgx.Conn) error {
	var micros int64
	asked := time.Now()
	err := c.QueryRow(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(&micros)
	if err == nil {
		k.last.Store(&moment{micros, asked.Add(time.Since(asked) / 2)})
	}
	return err
}

func (k *clock) now() time.Time {
	m := k.last.Load()
	return time.UnixMicro(m.micros + time.Since(m.heard).Microseconds())
}

const (
	beat        = time.Second // between two looks at the engine's clock
	foldEvery   = 5           // beats between folds of the counts, and looks at the log's size
	leastRotate = time.Minute // a settled group must not find its note gone
)

// tend looks after the engine until it is closed. Servers do so without knowing of each other: who
// comes second finds nothing to do. What fails is tried again at the next beat.
func (e *Engine) tend() {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ticker.C:
		case <-e.ctx.Done():
			return
		}
		_ = e.with(e.ctx, e.others, func(c *pgxpool.Conn) error {
			ctx, cancel := context.WithTimeout(e.ctx, 10*time.Second)
			defer cancel()
			if err := e.clock.set(ctx, c.Conn()); err != nil || e.opts.ReadOnly || n%foldEvery != 0 {
				return err
			}
			if _, err := c.Exec(ctx, "SELECT fold()"); err != nil {
				return err
			}
			return e.rotate(ctx, c)
		})
	}
}

// rotate goes on to the next table of groups when the present one has groups for half of the time,
// or a third of the bytes, that the log is kept. The next one has the oldest groups. It waits for
// nobody: who reads for long, such as a backup, puts it off.
func (e *Engine) rotate(ctx context.Context, c *pgxpool.Conn) error {
	var due bool
	err := c.QueryRow(ctx, `SELECT age > $1 AND (age > $2 OR size > $3) FROM (
		SELECT extract(epoch FROM clock_timestamp() - since)::float8 AS age, pg_total_relation_size(('groups_' || (SELECT last_value FROM active))::regclass) AS size FROM rotation) r`,
		leastRotate.Seconds(), max(e.opts.KeepFor/2, leastRotate).Seconds(), e.opts.KeepBytes/3).Scan(&due)
	if err != nil || !due {
		return err
	}
	return e.rotateNow(ctx, c)
}

// rotateNow empties the next table of groups and makes it the present one.
func (e *Engine) rotateNow(ctx context.Context, c *pgxpool.Conn) error {
	var was int
	var mine bool
	err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '200ms'"); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1, 0)", classFold).Scan(&mine); err != nil || !mine {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT last_value FROM active").Scan(&was); err != nil {
			return err
		}
		next := fmt.Sprintf("groups_%d", (was+1)%3)
		if _, err := tx.Exec(ctx, "LOCK TABLE "+next); err != nil {
			return err
		}
		// the last update of a group has a later stamp than the group
		if _, err := tx.Exec(ctx, `UPDATE rotation SET since = clock_timestamp(),
			trimmed = greatest(trimmed, (SELECT max(stamp + greatest(ups, 1) - 1) FROM `+next+`))`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "TRUNCATE "+next)
		return err
	})
	if isCode(err, "55P03") { // somebody reads the table: the next time
		return nil
	}
	if err == nil && mine { // not before: a sequence does not go back with a transaction
		_, err = c.Exec(ctx, "SELECT setval('active', $1)", (was+1)%3)
	}
	return err
}
