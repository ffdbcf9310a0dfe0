package gather

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gotycoon/db/engine"
)

// Ask makes a call of the engine that is no group's and that may be repeated, such as a scan: again
// and again while it fails for a reason that may pass, for as long as Options.Timeout. While the
// engine is away it returns ErrAway at once.
func Ask[T any](ctx context.Context, g *Gather, f func(ctx context.Context) (T, error)) (T, error) {
	within, cancel := context.WithTimeout(ctx, g.opts.Timeout)
	defer cancel()
	return Retry(ctx, g, func() (T, error) { return f(within) })
}

// Retry is Ask for a call whose own context must last longer than the call.
func Retry[T any](ctx context.Context, g *Gather, f func() (T, error)) (answer T, err error) {
	p, err := g.enter(ctx, 1, 0)
	if err != nil {
		return answer, err
	}
	defer g.leave(p)
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		answer, err = call(g, func(context.Context) (T, error) { return f() })
		if kind := engine.KindOf(err); err == nil || kind == engine.Refused || kind == engine.Full {
			return answer, err
		}
		if ctx.Err() == nil && time.Since(began) < g.opts.Timeout && g.sleep(pause) {
			continue
		}
		if errors.Is(err, engine.ErrCrowded) {
			return answer, err
		}
		if ctx.Err() == nil { // who has given up earlier knows nothing
			g.outage.doubt(began)
		}
		why := fmt.Errorf("no answer from the engine within %v", g.opts.Timeout)
		if !engine.IsAway(err) { // else it names hosts and users, which clients need not know
			why = fmt.Errorf("%w: %w", why, err)
		}
		return answer, &engine.Error{Kind: engine.Undone, Err: why}
	}
}

// Once makes a call that must not be repeated, for as long as Options.Timeout.
func Once[T any](g *Gather, f func(ctx context.Context) (T, error)) (T, error) { return call(g, f) }
