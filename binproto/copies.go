package binproto

import (
	"sync/atomic"
	"time"
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
