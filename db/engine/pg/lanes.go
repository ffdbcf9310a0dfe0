package pg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

// Lane gives this server a lane. The row that says so is committed before anybody uses the lane,
// and each group of the lane asks for the row, see the function note in schema.sql. The sequence
// only proposes numbers: PostgreSQL forgets the last ones in a crash, or when somebody sets it, and
// a number that has a row is passed over. So is one that this server has had before, when
// PostgreSQL did not know that: who has the lane may not have found out yet.
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

// ownID returns an ID for a group that the engine itself makes. Who waits while another one asks
// for a lane has no connection meanwhile.
func (e *Engine) ownID(ctx context.Context) (id engine.GroupID, err error) {
	select {
	case id = <-e.own:
	case <-ctx.Done():
		return id, mean(ctx.Err(), false)
	}
	defer func() { e.own <- id }()
	if id.Lane == 0 || id.Seq == engine.LastSeq || id.Lane == e.ownLost.Load() {
		n, err := e.Lane(ctx)
		if err != nil {
			return id, err
		}
		id = engine.GroupID{Lane: n}
	}
	id.Seq++
	return id, nil
}

// heedOwn notes what an error says about the lane of a group that the engine itself makes. A lane
// that was lost once is not asked for again: this server never gets the number a second time.
func (e *Engine) heedOwn(id engine.GroupID, err error) {
	if errors.Is(err, engine.ErrDisowned) {
		e.ownLost.Store(id.Lane)
	}
}
