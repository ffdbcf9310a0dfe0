package pg

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

type claims struct{ *Engine }

// Claims returns the claims.
func (e *Engine) Claims() engine.Claims { return claims{e} }

// What the functions of claims answer, see table.sql.
const (
	claimMade = iota
	claimNone
	claimFenced
	claimBusy
)

// errBusy is for a claim in a database that somebody has alone, or waits for. To wait would take a
// connection, of which leases and the commit of that transaction need one.
var errBusy error = &engine.Error{Kind: engine.Undone, Err: errors.New("a transaction has the database")}

// ask makes a call whose commit is not cancelled: nobody must see it before the standby has it.
func (e claims) ask(ctx context.Context, unknown bool, f func(c *pgxpool.Conn) error) error {
	select {
	case e.claiming <- struct{}{}:
	case <-ctx.Done():
		return mean(ctx.Err(), false)
	}
	defer func() { <-e.claiming }()
	c, err := e.others.Acquire(ctx)
	if err != nil {
		return mean(err, false)
	}
	committing(c, true)
	return e.done(c, e.others, f(c), unknown)
}

// idArgs are the arguments that name a claim.
func idArgs(id engine.ClaimID, more ...any) []any {
	return append([]any{id.By.Name, int64(id.By.Number), id.By.Mark[:], int64(id.Number)}, more...)
}

// Take claims a record.
func (e claims) Take(ctx context.Context, id engine.ClaimID, c engine.Claim) (rec engine.Record, found bool, err error) {
	if err := e.table(ctx, c.DB); err != nil {
		return rec, false, err
	}
	start, end := e.within(c.Prefix)
	if bytes.Compare(c.From, start) > 0 {
		start = c.From
	}
	state := claimNone
	err = e.ask(ctx, true, func(conn *pgxpool.Conn) error {
		text := fmt.Sprintf("SELECT o_k, o_xt, o_ver, o_v, o_state FROM take_%d($1, $2, $3, $4, $5, $6, $7)", c.DB)
		rows, err := conn.Query(ctx, text, idArgs(id, start, end, e.Now())...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			raw := rows.RawValues()
			if state = int(binary.BigEndian.Uint32(raw[4])); state == claimMade {
				if rec, err = recordOf(c.DB, raw[:4]); err != nil {
					return err
				}
			}
		}
		return rows.Err()
	})
	if err == nil {
		err = claimError(state)
	}
	return rec, err == nil && state == claimMade, err
}

// claimError returns what an answer says about a call.
func claimError(state int) error {
	switch state {
	case claimFenced:
		return engine.ErrFenced
	case claimBusy:
		return errBusy
	}
	return nil
}

// within returns between which keys those with a prefix are. There is always an end: plans are made
// without it, and would read on to the end of the table where it may be missing.
func (e *Engine) within(prefix []byte) (start, end []byte) {
	if end = after(prefix); end == nil {
		end = bytes.Repeat([]byte{0xff}, e.Limits().Key+1)
	}
	return notNull(prefix), end
}

// Settle tells what has become of a Take.
func (e claims) Settle(ctx context.Context, id engine.ClaimID) (rec engine.Record, found bool, err error) {
	err = e.ask(ctx, false, func(c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, "SELECT * FROM settle_claim($1, $2, $3, $4)", idArgs(id)...)
		if err != nil {
			return err
		}
		all, err := claimed(rows)
		if err == nil && len(all) > 0 {
			rec, found = all[0].Record, true
		}
		return err
	})
	return rec, found && err == nil, err
}

// claimed reads rows of (holder, term, mark, number, db, k, xt, ver, v).
func claimed(rows pgx.Rows) (all []engine.Claimed, err error) {
	defer rows.Close()
	for rows.Next() {
		raw := rows.RawValues()
		r, err := recordOf(uint16(binary.BigEndian.Uint32(raw[4])), raw[5:])
		if err != nil {
			return nil, err
		}
		by := engine.Term{Name: string(raw[0]), Number: binary.BigEndian.Uint64(raw[1])}
		copy(by.Mark[:], raw[2])
		all = append(all, engine.Claimed{Record: r, ID: engine.ClaimID{By: by, Number: binary.BigEndian.Uint64(raw[3])}})
	}
	return all, rows.Err()
}

// updates returns what the log gets.
func (e claims) updates(u *ulog.Update) (n int, body []byte) {
	if !e.meta.Log {
		return 0, nil
	}
	return 1, appendUpdates(nil, 1, []ulog.Update{*u})
}

// Finish forgets a claimed record. The group keeps its ID until PostgreSQL says that the lane is
// not this server's: then PostgreSQL has made none of the attempts.
func (e claims) Finish(ctx context.Context, c *engine.Claimed, update ulog.Update) error {
	if err := e.table(ctx, update.DBID); err != nil {
		return err
	}
	if c.End == (engine.GroupID{}) {
		group, err := e.ownID(ctx)
		if err != nil {
			return err
		}
		c.End = group
	}
	var state int
	n, body := e.updates(&update)
	err := e.ask(ctx, false, func(conn *pgxpool.Conn) error {
		text := fmt.Sprintf("SELECT finish_%d($1, $2, $3, $4, $5, $6, $7, $8, $9)", update.DBID)
		return conn.QueryRow(ctx, text, idArgs(c.ID, int64(c.End.Lane), e.writer[:], int64(c.End.Seq), n, body)...).Scan(&state)
	})
	e.heedOwn(c.End, err)
	switch {
	case errors.Is(err, engine.ErrDisowned):
		c.End = engine.GroupID{}
		return err
	case err != nil:
		return err
	case state == claimNone:
		return engine.ErrUnclaimed
	}
	return claimError(state)
}

// GiveBack makes a claimed record visible again.
func (e claims) GiveBack(ctx context.Context, id engine.ClaimID, update ulog.Update) (taken bool, err error) {
	if err := e.table(ctx, update.DBID); err != nil {
		return false, err
	}
	group, err := e.ownID(ctx)
	if err != nil {
		return false, err
	}
	var state int
	n, body := e.updates(&update)
	err = e.ask(ctx, false, func(c *pgxpool.Conn) error {
		text := fmt.Sprintf("SELECT give_%d($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", update.DBID)
		args := idArgs(id, notNull(update.Key), int64(group.Revision()), int64(group.Lane), e.writer[:], int64(group.Seq), n, body)
		return c.QueryRow(ctx, text, args...).Scan(&state)
	})
	e.heedOwn(group, err)
	if err == nil {
		err = claimError(state)
	}
	return err == nil && state == claimNone, err
}

// Abandoned returns claims whose terms have ended.
func (e claims) Abandoned(ctx context.Context, limit, size int) (all []engine.Claimed, err error) {
	err = e.ask(ctx, false, func(c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, "SELECT * FROM abandoned($1, $2)", limit, size)
		if err == nil {
			all, err = claimed(rows)
		}
		return err
	})
	return all, err
}

// Waiting looks for live records.
func (e claims) Waiting(ctx context.Context, db uint16, prefixes [][]byte) (there []bool, err error) {
	if err := e.table(ctx, db); err != nil {
		return nil, err
	}
	starts, ends := make([][]byte, len(prefixes)), make([][]byte, len(prefixes))
	for i, p := range prefixes {
		starts[i], ends[i] = e.within(p)
	}
	text := fmt.Sprintf(`SELECT EXISTS (SELECT FROM r%d WHERE k >= p.start AND k < p.upto AND xt >= $3)
		FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY p(start, upto, i) ORDER BY i`, db)
	err = e.with(ctx, e.readers, func(c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, text, starts, ends, e.Now())
		if err == nil {
			there, err = pgx.CollectRows(rows, pgx.RowTo[bool])
		}
		return err
	})
	return there, err
}
