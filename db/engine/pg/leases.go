package pg

import (
	"context"
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
const grantSQL = `INSERT INTO leases VALUES ($1, $2, 1, clock_timestamp() + $3 * interval '1 ms')
	ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, term = leases.term + 1, ends = clock_timestamp() + $3 * interval '1 ms'
	WHERE leases.ends <= clock_timestamp() RETURNING term`

// Hold waits for a lease, and renews it three times while it lasts.
func (e leases) Hold(ctx context.Context, name string) (engine.Term, <-chan struct{}, error) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.ctx, cancel)
	for {
		asked := time.Now()
		term, err := e.grant(ctx, name)
		if err != nil {
			stop()
			cancel()
			return engine.Term{}, nil, err
		}
		if term > 0 {
			lost := make(chan struct{})
			e.work.Go(func() {
				defer cancel()
				defer stop()
				e.keep(ctx, name, term, asked, lost)
			})
			return engine.Term{Name: name, Number: term}, lost, nil
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

// grant returns the term of a lease that is ours now, 0 where somebody else has it.
func (e leases) grant(ctx context.Context, name string) (term uint64, err error) {
	err = e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		err := c.QueryRow(ctx, grantSQL, name, e.opts.Addr, e.opts.Lease.Milliseconds()).Scan(&term)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return term, err
}

// keep renews a lease until ctx ends, and gives it back then. It closes lost when two thirds of the
// lease have passed since the last renewal began that succeeded: before anybody else can have it.
func (e leases) keep(ctx context.Context, name string, term uint64, renewed time.Time, lost chan struct{}) {
	defer close(lost) // behind the end, for who waits for both
	lasts := e.opts.Lease
	for {
		pause(ctx, lasts/3)
		if ctx.Err() != nil {
			break
		}
		began := time.Now()
		within, cancel := context.WithDeadline(ctx, renewed.Add(lasts*2/3))
		held, err := e.set(within, name, term, lasts)
		cancel()
		if err == nil && held {
			renewed = began
		} else if err == nil || time.Since(renewed) >= lasts*2/3 {
			break
		}
	}
	within, cancel := context.WithDeadline(context.Background(), renewed.Add(lasts*2/3))
	defer cancel()
	_, _ = e.set(within, name, term, 0) // else it ends by itself
}

// set makes a lease end after a time from now, and reports whether it was ours.
func (e leases) set(ctx context.Context, name string, term uint64, lasts time.Duration) (held bool, err error) {
	err = e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		tag, err := c.Exec(ctx, `UPDATE leases SET ends = clock_timestamp() + $3 * interval '1 ms'
			WHERE name = $1 AND term = $2 AND ends > clock_timestamp()`, name, int64(term), lasts.Milliseconds())
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
