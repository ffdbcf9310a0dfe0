package pg

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

type claims struct{ *Engine }

// Claims returns the claims.
func (e *Engine) Claims() engine.Claims { return claims{e} }

// Take claims a record. It passes over records that somebody is changing.
func (e claims) Take(ctx context.Context, c engine.Claim) (rec engine.Record, found bool, err error) {
	if err := e.table(ctx, c.DB); err != nil {
		return rec, false, err
	}
	start := notNull(c.Prefix)
	if bytes.Compare(c.From, start) > 0 {
		start = c.From
	}
	err = e.with(ctx, e.others, func(conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, fmt.Sprintf("SELECT o_k, o_xt, o_ver, o_v FROM take_%d($1, $2, $3, $4)", c.DB),
			int64(c.Lane), start, after(c.Prefix), e.Now())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			rec, found = recordOf(c.DB, rows.RawValues()), true
		}
		return rows.Err()
	})
	return rec, found && err == nil, err
}

// updates returns what the log gets.
func (e claims) updates(u *ulog.Update) (n int, body []byte) {
	if !e.meta.Log {
		return 0, nil
	}
	return 1, appendUpdates(nil, 1, []ulog.Update{*u})
}

// Finish forgets a claimed record.
func (e claims) Finish(ctx context.Context, lane uint64, rec *engine.Record, update ulog.Update) error {
	id, err := e.ownID(ctx)
	if err != nil {
		return err
	}
	n, body := e.updates(&update)
	return e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, fmt.Sprintf("SELECT finish_%d($1, $2, $3, $4, $5, $6, $7)", rec.DB),
			int64(lane), notNull(rec.Key.Key), int64(rec.Revision), int64(id.Lane), int64(id.Seq), n, body)
		return err
	})
}

// GiveBack makes a claimed record visible again.
func (e claims) GiveBack(ctx context.Context, lane uint64, rec *engine.Record, xt int64, update ulog.Update) error {
	id, err := e.ownID(ctx)
	if err != nil {
		return err
	}
	n, body := e.updates(&update)
	return e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, fmt.Sprintf("SELECT give_%d($1, $2, $3, $4, $5, $6, $7, $8, $9)", rec.DB),
			int64(lane), notNull(rec.Key.Key), int64(rec.Revision), xt, int64(revision(id)), int64(id.Lane), int64(id.Seq), n, body)
		return err
	})
}

// GiveBackAll makes visible what a lane has claimed, database by database: a repetition goes on
// where this one has failed.
func (e claims) GiveBackAll(ctx context.Context, lane uint64) (records int, err error) {
	var dbs []int32
	err = e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		return c.QueryRow(ctx, "SELECT coalesce(array_agg(DISTINCT db ORDER BY db), '{}') FROM claimed WHERE lane = $1", int64(lane)).Scan(&dbs)
	})
	for _, db := range dbs {
		if err != nil {
			break
		}
		var id engine.GroupID
		if id, err = e.ownID(ctx); err != nil {
			break
		}
		var back int
		err = e.with(ctx, e.others, func(c *pgxpool.Conn) error {
			return c.QueryRow(ctx, fmt.Sprintf("SELECT give_all_%d($1, $2)", db), int64(lane), int64(revision(id))).Scan(&back)
		})
		records += back
	}
	return records, err
}
