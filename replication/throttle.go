package replication

import (
	"context"
	"time"
)

const (
	// throttleStep is how much a follower saves up before it sleeps it off.
	throttleStep = 100 * time.Millisecond
	// fillerWeight is what a filler counts, in updates.
	fillerWeight = 64
)

// throttle spreads updates over time (-riv): each one costs an interval.
type throttle struct {
	interval time.Duration // 0: full speed
	owed     time.Duration
}

// add notes updates and fillers.
func (t *throttle) add(updates, fillers int) {
	t.owed += t.interval * time.Duration(updates+fillerWeight*fillers)
}

// pay sleeps the whole steps that are owed, or until the context ends.
func (t *throttle) pay(ctx context.Context) {
	if due := t.owed.Truncate(throttleStep); due > 0 {
		t.owed -= due
		sleep(ctx, due)
	}
}

// batch returns how many updates may be applied at a time, at most limit: more would come in bursts, and the master would wait too
// long for a sign of life.
func (t *throttle) batch(limit int) int {
	if t.interval <= 0 {
		return limit
	}
	return max(1, min(limit, int(throttleStep/t.interval)))
}

// sleep returns after d, or when the context ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
