package pg

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

type log struct{ *Engine }

// Log returns the log, nil where none is kept.
func (e *Engine) Log() engine.Log {
	if !e.meta.Log {
		return nil
	}
	return log{e}
}

// ID returns the identity of the log.
func (l log) ID(context.Context) ([16]byte, error) { return l.meta.id, nil }

const (
	groupsAtOnce = 1000 // of one statement
	// how often somebody looks whether writers have ended
	look = time.Millisecond
)

// readSQL reads groups between two stamps, and says of each whether more were asked for. Bodies
// that are not returned are not read either: their sizes are known without them.
const readSQL = `SELECT lane, seq, stamp, ups, won, dbid, place, body FROM (
	SELECT *, sum(coalesce(octet_length(body), 0)) OVER (ORDER BY stamp) AS total, row_number() OVER (ORDER BY stamp) AS nth FROM (
		SELECT * FROM groups_0 WHERE stamp > $1 AND stamp <= $2 UNION ALL
		SELECT * FROM groups_1 WHERE stamp > $1 AND stamp <= $2 UNION ALL
		SELECT * FROM groups_2 WHERE stamp > $1 AND stamp <= $2 ORDER BY stamp LIMIT $4) g) t
	WHERE nth = 1 OR total <= $3 ORDER BY stamp`

// Read returns groups up to the horizon.
func (l log) Read(ctx context.Context, after engine.Stamp, maxBytes int) (groups []engine.Logged, upTo engine.Stamp, err error) {
	horizon, err := l.horizon(ctx)
	if err != nil {
		return nil, 0, err
	}
	upTo = max(after, horizon)
	err = l.with(ctx, l.long, func(c *pgxpool.Conn) error {
		if groups, err = readGroups(ctx, c, after, upTo, maxBytes); err != nil {
			return err
		}
		// Only now: a TRUNCATE between the two is seen at once by who reads groups.
		var trimmed engine.Stamp
		if err := c.QueryRow(ctx, "SELECT trimmed FROM rotation").Scan(&trimmed); err != nil {
			return err
		}
		if after < trimmed {
			return engine.ErrTrimmed
		}
		var more bool
		last := after
		if len(groups) > 0 {
			last = groups[len(groups)-1].Last()
		}
		err := c.QueryRow(ctx, `SELECT EXISTS (SELECT FROM groups_0 WHERE stamp > $1 AND stamp <= $2) OR
			EXISTS (SELECT FROM groups_1 WHERE stamp > $1 AND stamp <= $2) OR EXISTS (SELECT FROM groups_2 WHERE stamp > $1 AND stamp <= $2)`,
			last, upTo).Scan(&more)
		if more {
			upTo = last
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return groups, upTo, nil
}

func readGroups(ctx context.Context, c *pgxpool.Conn, after, upTo engine.Stamp, maxBytes int) (groups []engine.Logged, err error) {
	rows, err := c.Query(ctx, readSQL, int64(after), int64(upTo), int64(maxBytes), groupsAtOnce)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var g engine.Logged
		var ups int
		var won []int16
		var dbid *int32
		var place, body []byte
		if err := rows.Scan(&g.ID.Lane, &g.ID.Seq, &g.Stamp, &ups, &won, &dbid, &place, &body); err != nil {
			return nil, err
		}
		if g.Updates, err = parseBody(body, won); err != nil || len(g.Updates) != ups || place != nil && dbid == nil {
			return nil, engine.Refuse(errBody.Error())
		}
		if place != nil {
			g.Position = &ulog.Position{DBID: uint16(*dbid), State: place}
		}
		groups = append(groups, g)
	}
	return groups, rows.Err()
}

// horizon returns a stamp up to which all groups can be seen, by statements behind it.
//
// Who draws a stamp has had the lock "stamping" before, and keeps it until its changes can be seen.
// So, in this order: the last stamp; then those who have the lock; and when none of them has it any
// more, all stamps up to the last one belong to groups that can be seen, or never will be made. Who
// takes the lock later draws a later stamp.
//
// Other orders, and "no transaction is older than mine", have missed updates or have waited for
// transactions of strangers; TestHorizon tries some. The locks, unlike pg_stat_activity, show
// writers of other roles as well, and no hold or transaction that has not drawn a stamp.
//
// A standby has the last stamp, and nothing that tells of those locks: groups with earlier stamps
// may come behind. So servers note a horizon now and then, which comes to the standby behind the
// groups up to it.
func (e *Engine) horizon(ctx context.Context) (upTo engine.Stamp, err error) {
	err = e.with(ctx, e.long, func(c *pgxpool.Conn) error {
		var standby bool
		err := c.QueryRow(ctx, `SELECT CASE WHEN pg_is_in_recovery() THEN (SELECT last_value FROM horizon) ELSE last_value END, pg_is_in_recovery()
			FROM stamps`).Scan(&upTo, &standby)
		if err != nil || standby {
			return err
		}
		// the log of an idle engine goes on with the clock
		if now := time.Unix(e.Now()-1, 0); upTo < ulog.StampAt(now) && !e.opts.ReadOnly {
			if err := c.QueryRow(ctx, "SELECT stamp(1, 0)").Scan(&upTo); err != nil {
				return err
			}
		}
		return writersEnd(ctx, c)
	})
	return upTo, err
}

// noteHorizon notes a horizon for standbys, unless nothing was written since the last one.
func (e *Engine) noteHorizon(ctx context.Context, c *pgxpool.Conn) error {
	var last, noted engine.Stamp
	err := c.QueryRow(ctx, "SELECT s.last_value, h.last_value FROM stamps s, horizon h").Scan(&last, &noted)
	if err == nil && last > noted {
		if err = writersEnd(ctx, c); err == nil {
			_, err = c.Exec(ctx, "SELECT setval('horizon', $1) FROM horizon WHERE last_value < $1", int64(last))
		}
	}
	return err
}

// writersEnd waits until those who are between stamp and commit have ended.
func writersEnd(ctx context.Context, c *pgxpool.Conn) error {
	writers, err := stamping(ctx, c)
	for err == nil && len(writers) > 0 {
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return undone(ctx.Err())
		}
		var now []string
		now, err = stamping(ctx, c)
		writers = slices.DeleteFunc(writers, func(w string) bool { return !slices.Contains(now, w) })
	}
	return err
}

// stamping returns the transactions that are between stamp and commit.
func stamping(ctx context.Context, c *pgxpool.Conn) (writers []string, err error) {
	err = c.QueryRow(ctx, `SELECT coalesce(array_agg(virtualtransaction), '{}') FROM pg_locks
		WHERE locktype = 'advisory' AND classid = $1 AND granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, uint32(classStamping)).Scan(&writers)
	return writers, err
}

// Oldest returns up to where the log was removed.
func (l log) Oldest(ctx context.Context) (trimmed engine.Stamp, err error) {
	err = l.with(ctx, l.long, func(c *pgxpool.Conn) error {
		return c.QueryRow(ctx, "SELECT trimmed FROM rotation").Scan(&trimmed)
	})
	return trimmed, err
}

// Trim makes the log begin later. The rows go when their table's turn has come: until then they are
// notes of groups, for Settle.
func (l log) Trim(ctx context.Context, upTo engine.Stamp) error {
	horizon, err := l.horizon(ctx)
	if err != nil {
		return err
	}
	return l.with(ctx, l.long, func(c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, "UPDATE rotation SET trimmed = greatest(trimmed, $1)", int64(min(upTo, horizon)))
		return err
	})
}
