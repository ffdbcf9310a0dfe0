package gather

import (
	"sync/atomic"
	"time"

	"gotycoon/internal/metrics"
)

// Stats are figures since the start. The histograms are of nanoseconds, but for GroupOperations,
// GroupBytes and ReadKeys.
type Stats struct {
	Queue      int64 // operations and reads that wait or are under way
	QueueBytes int64
	QueueLimit int64 // from which on operations are refused as busy
	Away       bool  // the engine does not answer; operations are refused
	// for how long operations that change something have been tried, and none was answered; a
	// transaction that they wait for does not count. See trial
	Silent time.Duration
	// why a call had no answer, while the engine is away or silent; nil if nothing is known. It may
	// name users and hosts
	Failure error

	Lost          uint64 // operations that had to run again because another server was faster
	Undone        uint64 // groups that were tried again because a call had failed
	Unknown       uint64 // groups without an answer
	SettledMade   uint64 // of these, groups that were made
	SettledUndone uint64 // and groups that were not
	Held          uint64 // groups whose keys were held
	Refused       uint64 // operations and reads that were refused as busy, or while the engine was away

	GroupOperations *metrics.Histogram // operations of a group
	GroupBytes      *metrics.Histogram // keys and values of a group's changes
	ReadKeys        *metrics.Histogram // keys of a request of reads
	Wait            *metrics.Histogram // from the arrival of an operation until its body runs
	Read            *metrics.Histogram // of a group's keys
	Write           *metrics.Histogram
}

// counters are what Stats are made of.
type counters struct {
	lost, undone, unknown, settledMade, settledUndone, held, refused atomic.Uint64

	operations, bytes, keys, wait, read, write *metrics.Histogram
}

func (c *counters) init() {
	sizes := []int64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
	c.operations, c.keys = metrics.NewHistogram(sizes...), metrics.NewHistogram(sizes...)
	c.bytes = metrics.NewHistogram(256, 1<<10, 4<<10, 16<<10, 64<<10, 256<<10, 1<<20, 4<<20, 16<<20)
	c.wait, c.read, c.write = metrics.NewTimes(), metrics.NewTimes(), metrics.NewTimes()
}

// Stats returns the figures of now.
func (g *Gather) Stats() Stats {
	c := &g.stats
	operations, bytes := g.queue.taken()
	away, silent := g.outage.away(), g.trial.silence()
	var why error
	if away {
		why = g.failure.since(time.Unix(0, g.outage.last.Load()))
	} else if silent > 0 {
		why = g.failure.since(time.Now().Add(-silent))
	}
	return Stats{
		Queue: operations, QueueBytes: bytes, QueueLimit: int64(g.opts.Queue), Away: away, Silent: silent, Failure: why,
		Lost: c.lost.Load(), Undone: c.undone.Load(), Unknown: c.unknown.Load(), SettledMade: c.settledMade.Load(),
		SettledUndone: c.settledUndone.Load(), Held: c.held.Load(), Refused: c.refused.Load(),
		GroupOperations: c.operations, GroupBytes: c.bytes, ReadKeys: c.keys, Wait: c.wait, Read: c.read, Write: c.write,
	}
}
