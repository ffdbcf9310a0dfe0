package remote

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gotycoon/client"
	"gotycoon/ulog"
)

// tail applies the source's log to the target. It is the receiver of a feed, see there for what
// keeps an update from being lost.
type tail struct {
	*writer
	lanes   map[uint16]*lane // by the number on the source
	ahead   time.Duration    // the source's clock is so far ahead of ours
	applied int64            // updates since the beginning
	newest  uint64           // stamp of the last of them
	reached uint64           // everything up to here has been received

	// beat is called with each heartbeat, when the target has everything received before. done ends
	// the feed.
	beat func(ctx context.Context, ts uint64) (done bool, err error)
}

// receive implements receiver.
func (t *tail) receive(ctx context.Context, u client.LogMessage) error {
	t.reached = max(t.reached, u.TS)
	if u.Heartbeat {
		if err := t.flush(ctx); err != nil {
			return err
		}
		t.show()
		done, err := t.beat(ctx, u.TS)
		if err == nil && done {
			err = errDone
		}
		return err
	}
	if len(u.Log) == 0 {
		return nil
	}
	up, err := ulog.ParseMessage(u.Log)
	l := t.lanes[up.DBID]
	if l == nil { // another database, or the services'
		return nil
	}
	if err != nil {
		return fmt.Errorf("the update with ts=%d is not understood: %w", u.TS, err)
	}
	t.applied++
	t.newest = max(t.newest, u.TS)
	if t.applied%batchRecords == 0 {
		t.show()
	}
	switch up.Op {
	case ulog.OpSet:
		return t.putStored(ctx, l, up.Key, up.Value)
	case ulog.OpRemove:
		return t.put(ctx, l, change{key: string(slices.Clone(up.Key)), removed: true})
	case ulog.OpClear:
		return t.clear(ctx, l)
	}
	return fmt.Errorf("the update with ts=%d is of a kind that this program does not know: use the ktremotemgr of the newer server", u.TS)
}

// flush implements receiver.
func (t *tail) flush(ctx context.Context) error {
	for _, l := range t.lanes {
		if err := t.send(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// lag is how long ago the source made the update that was received last, or could not have made a
// later one. Heartbeats are a second behind the source's clock.
func (t *tail) lag() time.Duration {
	return max(0, time.Since(time.Unix(0, int64(t.reached)))+t.ahead)
}

func (t *tail) show() {
	t.progress("following: lag %.1f s, %d updates applied, at ts=%d", t.lag().Seconds(), t.applied, t.reached)
}
