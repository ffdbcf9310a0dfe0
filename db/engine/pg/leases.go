package pg

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

type leases struct{ *Engine }

// Leases returns the leases.
func (e *Engine) Leases() engine.Leases { return leases{e} }

// askEvery is how often who waits for a lease asks for it.
const askEvery = 250 * time.Millisecond

// A lease ends by PostgreSQL's clock. Each holder gets the next term. The update waits for groups
// that have the lease as their guard, and looks at the time when they have ended.
const grantSQL = `INSERT INTO leases (name, holder, term, mark, ends) VALUES ($1, $2, 1, $4, clock_timestamp() + $3 * interval '1 ms')
	ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, term = leases.term + 1, mark = excluded.mark, ends = clock_timestamp() + $3 * interval '1 ms'
	WHERE leases.ends <= clock_timestamp() RETURNING term`

// Hold waits for a lease, and renews it three times while it lasts.
func (e leases) Hold(ctx context.Context, name string) (engine.Term, <-chan struct{}, error) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.ctx, cancel)
	for {
		asked := time.Now()
		term := engine.Term{Name: name}
		_, _ = rand.Read(term.Mark[:]) // it never fails
		granted, err := e.grant(ctx, &term)
		if err != nil {
			stop()
			cancel()
			return engine.Term{}, nil, err
		}
		if granted {
			lost := make(chan struct{})
			e.work.Go(func() {
				defer cancel()
				defer stop()
				e.keep(ctx, &term, asked, lost)
			})
			return term, lost, nil
		}
		pause(ctx, askEvery)
	}
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// grant gives a term its number, unless somebody else has the lease.
func (e leases) grant(ctx context.Context, t *engine.Term) (granted bool, err error) {
	err = e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		err := c.QueryRow(ctx, grantSQL, t.Name, e.opts.Addr, e.opts.Lease.Milliseconds(), t.Mark[:]).Scan(&t.Number)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		granted = err == nil
		return err
	})
	return granted && err == nil, err
}

// keep renews a lease until ctx ends, and gives it back then. It closes lost when two thirds of the
// lease have passed since the last renewal began that succeeded: before anybody else can have it.
func (e leases) keep(ctx context.Context, t *engine.Term, renewed time.Time, lost chan struct{}) {
	defer close(lost) // behind the end, for who waits for both
	lasts := e.opts.Lease
	for {
		pause(ctx, lasts/3)
		if ctx.Err() != nil {
			break
		}
		began := time.Now()
		within, cancel := context.WithDeadline(ctx, renewed.Add(lasts*2/3))
		held, err := e.set(within, t, lasts)
		cancel()
		if err == nil && held {
			renewed = began
		} else if err == nil || time.Since(renewed) >= lasts*2/3 {
			break
		}
	}
	within, cancel := context.WithDeadline(context.Background(), renewed.Add(lasts*2/3))
	defer cancel()
	_, _ = e.set(within, t, 0) // else it ends by itself
}

// set makes a lease end after a time from now, and reports whether it was ours.
func (e leases) set(ctx context.Context, t *engine.Term, lasts time.Duration) (held bool, err error) {
	err = e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		tag, err := c.Exec(ctx, `UPDATE leases SET ends = clock_timestamp() + $3 * interval '1 ms'
			WHERE name = $1 AND term = $2 AND mark = $4 AND ends > clock_timestamp()`, t.Name, int64(t.Number), lasts.Milliseconds(), t.Mark[:])
		held = tag.RowsAffected() == 1
		return err
	})
	return held, err
}

// Holder returns who has a lease.
func (e leases) Holder(ctx context.Context, name string) (addr string, term uint64, err error) {
	err = e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		err := c.QueryRow(ctx, "SELECT CASE WHEN ends > clock_timestamp() THEN holder ELSE '' END, term FROM leases WHERE name = $1", name).Scan(&addr, &term)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return addr, term, err
}
