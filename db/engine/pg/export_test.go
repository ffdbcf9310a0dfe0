package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

// Mean says what an error of PostgreSQL says about a call that changes something.
func Mean(err error) error { return mean(err, true) }

// RotateNow goes on to the next table of groups.
func (e *Engine) RotateNow(ctx context.Context) error {
	return e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, "SELECT rotate(0, 0, 0)")
		return err
	})
}

// Rotate does so if it is due.
func (e *Engine) Rotate(ctx context.Context) error {
	return e.with(ctx, e.others, func(c *pgxpool.Conn) error { return e.rotate(ctx, c) })
}

// Horizon returns a stamp up to which the log is complete.
func (e *Engine) Horizon(ctx context.Context) (engine.Stamp, error) { return e.horizon(ctx) }

// Setting returns what a session of ours has for a parameter of PostgreSQL.
func (e *Engine) Setting(ctx context.Context, name string) (is string, err error) {
	err = e.with(ctx, e.lanes, func(c *pgxpool.Conn) error {
		return c.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&is)
	})
	return is, err
}

// NoteHorizon notes it for standbys.
func (e *Engine) NoteHorizon(ctx context.Context) error {
	return e.with(ctx, e.others, func(c *pgxpool.Conn) error { return e.noteHorizon(ctx, c) })
}

// StandStill makes a transaction one of a server that stands still.
func StandStill(x engine.Tx) { x.(*tx).stop() }

// Waits reports whether anybody waits for a database's lock.
func (e *Engine) Waits(ctx context.Context, db uint16) (waits bool, err error) {
	err = e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		return c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = $1 AND objid = $2 AND NOT granted)",
			classDatabase, int(db)).Scan(&waits)
	})
	return waits, err
}

// LongAgo has the engine take the last group of a lane for one that was written then.
func (e *Engine) LongAgo(lane uint64, d time.Duration) {
	e.holdsMu.Lock()
	defer e.holdsMu.Unlock()
	e.writes[lane] = e.writes[lane].Add(-d)
}
