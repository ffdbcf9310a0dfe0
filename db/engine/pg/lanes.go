package pg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

// Lane gives this server a lane. The row that says so is committed before anybody uses the lane, so
// what PostgreSQL has of the lane's groups comes behind the row, on the standby and in each backup
// too. The sequence only proposes numbers: PostgreSQL forgets the last ones in a crash, or when
// somebody sets it, and a number that has a row is passed over. So is one that this server has had
// before, when PostgreSQL did not know that: who has the lane may not have found out yet.
func (e *Engine) Lane(ctx context.Context) (n uint64, err error) {
	err = e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		for {
			const text = "INSERT INTO writers SELECT nextval('lanes'), $1 ON CONFLICT DO NOTHING RETURNING lane"
			err := c.QueryRow(ctx, text, e.writer[:]).Scan(&n)
			if errors.Is(err, pgx.ErrNoRows) {
				continue
			}
			if err != nil {
				return err
			}
			if _, before := e.drawn.LoadOrStore(n, true); !before {
				return nil
			}
		}
	})
	return n, err
}

// owns returns ErrDisowned if PostgreSQL does not know a lane as this server's: see "Lanes and the
// past" in package engine. It asks once for each connection and lane, because PostgreSQL cannot go
// back below a connection.
func (e *Engine) owns(ctx context.Context, c *pgxpool.Conn, lane uint64) error {
	l := linkOf(c.Conn().PgConn())
	if l != nil && l.owned[lane] {
		return nil
	}
	var mine bool
	const text = "SELECT EXISTS (SELECT FROM writers WHERE lane = $1 AND writer = $2)"
	if err := c.QueryRow(ctx, text, int64(lane), e.writer[:]).Scan(&mine); err != nil {
		return err
	}
	if !mine {
		e.ownMu.Lock()
		defer e.ownMu.Unlock()
		if e.own.Lane == lane {
			e.own = engine.GroupID{}
		}
		return engine.ErrDisowned
	}
	if l != nil {
		if l.owned == nil {
			l.owned = map[uint64]bool{}
		}
		l.owned[lane] = true
	}
	return nil
}

// ownID returns an ID for a group that the engine itself makes.
func (e *Engine) ownID(ctx context.Context) (engine.GroupID, error) {
	e.ownMu.Lock()
	defer e.ownMu.Unlock()
	if e.own.Lane == 0 || e.own.Seq == engine.LastSeq {
		n, err := e.Lane(ctx)
		if err != nil {
			return engine.GroupID{}, err
		}
		e.own = engine.GroupID{Lane: n}
	}
	e.own.Seq++
	return e.own, nil
}
