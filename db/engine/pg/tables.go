package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// table makes sure that a database has its tables and functions. This server asks once.
func (e *Engine) table(ctx context.Context, db uint16) error {
	if _, known := e.tables.Load(db); known {
		return nil
	}
	const there = "SELECT to_regproc($1) IS NOT NULL"
	last := fmt.Sprintf("gotycoon.give_%d", db)
	err := e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		var made bool
		if err := c.QueryRow(ctx, there, last).Scan(&made); err != nil || made {
			return err
		}
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, 0)", classCreate); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, there, last).Scan(&made); err != nil || made {
				return err
			}
			_, err := tx.Exec(ctx, sql(tableSQL, db), pgx.QueryExecModeSimpleProtocol)
			return err
		})
	})
	if err == nil {
		e.tables.Store(db, true)
	}
	return err
}

// countSQL counts the records of a database, and the bytes of its table.
const countSQL = "SELECT coalesce(sum(n), 0)::bigint, pg_total_relation_size($2::text::regclass) FROM gotycoon.deltas WHERE db = $1"

// Count returns the number of records, and the bytes that their table takes on the disk.
func (e *Engine) Count(ctx context.Context, db uint16) (records, bytes int64, err error) {
	if err := e.table(ctx, db); err != nil {
		return 0, 0, err
	}
	err = e.with(ctx, e.readers, func(c *pgxpool.Conn) error {
		return c.QueryRow(ctx, countSQL, int(db), fmt.Sprintf("gotycoon.r%d", db)).Scan(&records, &bytes)
	})
	return records, bytes, err
}

// Sweep removes records that have expired.
func (e *Engine) Sweep(ctx context.Context, db uint16, before int64, limit int) (removed int, err error) {
	if err := e.table(ctx, db); err != nil {
		return 0, err
	}
	err = e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		return c.QueryRow(ctx, fmt.Sprintf("SELECT sweep_%d($1, $2)", db), before, limit).Scan(&removed)
	})
	return removed, err
}
