package remote

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

const (
	pollPosition = 50 * time.Millisecond
	betweenLooks = 200 * time.Millisecond // where nobody replicates and so nothing is waited for
)

// settle tells differences that stay from those that are about to vanish. A key differs for certain when both sides have passed each
// other's time stamps since it was seen to, and have the same two records, or one and none, as then. Keys that change all the
// time are left undecided after some rounds.
func (d *difference) settle(ctx context.Context) error {
	for round := int64(0); len(d.pending) > 0 && round < d.rounds; round++ {
		passed, err := d.pass(ctx)
		if err != nil {
			return err
		}
		now, err := d.keys(ctx)
		if err != nil {
			return err
		}
		before := d.pending
		d.pending = map[string]digests{}
		for key, was := range before {
			switch is, different := now[key]; {
			case !different: // any more
			case passed && is == was:
				d.certain[key] = is
			default:
				d.pending[key] = is
			}
		}
		if !passed {
			return nil
		}
	}
	return nil
}

// pass waits until each side that replicates is behind the other's last time stamp. It returns false, and says so, when that takes too
// long.
func (d *difference) pass(ctx context.Context) (bool, error) {
	end := time.Now().Add(d.wait)
	replicating := false
	for i := range d.sides {
		for {
			at, replicates, err := d.position(ctx, i)
			if err != nil {
				return false, err
			}
			replicating = replicating || replicates
			if !replicates || at >= d.ts[1-i] {
				break
			}
			if time.Now().After(end) {
				d.note(fmt.Sprintf("%s has not received what %s had at ts=%d within %v: it is at ts=%d", d.names[i], d.names[1-i], d.ts[1-i], d.wait, at))
				return false, nil
			}
			if err := pause(ctx, pollPosition); err != nil {
				return false, err
			}
		}
	}
	if replicating {
		return true, nil
	}
	return true, pause(ctx, betweenLooks)
}

// position is where a side is in the log of its master.
func (d *difference) position(ctx context.Context, side int) (at uint64, replicates bool, err error) {
	rows, err := d.sides[side].Report(ctx)
	if err != nil {
		return 0, false, d.fail(side, "DB::report", err)
	}
	if len(rows["repl_master_host"]) == 0 {
		return 0, false, nil
	}
	at, err = strconv.ParseUint(string(rows["repl_timestamp"]), 10, 64)
	if err != nil {
		return 0, false, d.fail(side, "DB::report", err)
	}
	return at, true, nil
}

// note tells people once.
func (d *difference) note(text string) {
	if !d.noted {
		d.noted = true
		fmt.Fprintf(d.stderr, "%s: %s\n", program, text)
	}
}

func pause(ctx context.Context, long time.Duration) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
