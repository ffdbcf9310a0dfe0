package binproto

import (
	"sync/atomic"
	"time"

	"gotycoon/internal/figure"
)

// Copies counts the copies of databases that clients have fetched, most of them backups. A nil
// Copies counts nothing.
type Copies struct {
	Running atomic.Int64
	Done    atomic.Int64 // complete copies
	Failed  atomic.Int64
	Last    atomic.Int64 // end of the latest complete copy, nanoseconds since 1970; 0: none yet
	Nanos   atomic.Int64 // duration of that copy
}

// begin counts the beginning of a copy; the caller calls end at its end.
func (n *Copies) begin() (end func(ok bool)) {
	if n == nil {
		return func(bool) {}
	}
	begun := time.Now()
	n.Running.Add(1)
	return func(ok bool) {
		n.Running.Add(-1)
		if !ok {
			n.Failed.Add(1)
			return
		}
		n.Done.Add(1)
		n.Nanos.Store(int64(time.Since(begun)))
		n.Last.Store(time.Now().UnixNano())
	}
}

// CopyMetrics returns the definitions of the metrics of Copies.
func CopyMetrics() []figure.Definition {
	return []figure.Definition{
		figure.Define("gotycoon_backup_running", figure.Gauge, "Copies of databases that clients are fetching, for example ktremotemgr backup."),
		figure.Define("gotycoon_backup_copies_total", figure.Counter, "Copies of databases that clients have fetched, by result: done or failed.", "result"),
		figure.Define("gotycoon_backup_last_timestamp_seconds", figure.Gauge, "End of the latest complete copy. Not before there is one."),
		figure.Define("gotycoon_backup_duration_seconds", figure.Gauge, "How long the latest complete copy took."),
	}
}

// Figures returns the metrics of the copies.
func (n *Copies) Figures() figure.Source {
	return figure.Source{Definitions: CopyMetrics(), Read: func(put figure.Put) {
		const perNano = 1e-9 // seconds
		put("gotycoon_backup_running", float64(n.Running.Load()))
		put("gotycoon_backup_copies_total", float64(n.Done.Load()), "done")
		put("gotycoon_backup_copies_total", float64(n.Failed.Load()), "failed")
		put("gotycoon_backup_duration_seconds", float64(n.Nanos.Load())*perNano)
		if last := n.Last.Load(); last > 0 {
			put("gotycoon_backup_last_timestamp_seconds", float64(last)*perNano)
		}
	}}
}
