package pg

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

// RotateNow goes on to the next table of groups.
func (e *Engine) RotateNow(ctx context.Context) error {
	return e.with(ctx, e.others, func(c *pgxpool.Conn) error { return e.rotateNow(ctx, c) })
}

// Rotate does so if it is due.
func (e *Engine) Rotate(ctx context.Context) error {
	return e.with(ctx, e.others, func(c *pgxpool.Conn) error { return e.rotate(ctx, c) })
}

// Horizon returns a stamp up to which the log is complete.
func (e *Engine) Horizon(ctx context.Context) (engine.Stamp, error) { return e.horizon(ctx) }

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
