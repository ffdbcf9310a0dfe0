// Package opcount counts what clients have done: the operations of the report's cnt_ rows, and the
// copies of databases that clients have fetched. Protocols add to the counters, and the report and
// the metrics read them. Every server has its own.
package opcount

import (
	"sync/atomic"
	"time"
)

// Counts has one counter for each cnt_ row.
type Counts struct {
	Set, SetMisses       atomic.Int64
	Remove, RemoveMisses atomic.Int64
	Get, GetMisses       atomic.Int64
	Script               atomic.Int64
	Misc                 atomic.Int64

	Watches        atomic.Int64 // under way
	WatchesRefused atomic.Int64 // because there were too many
}

// Copies counts the copies of databases that clients have fetched, most of them backups. A nil
// Copies counts nothing.
type Copies struct {
	Running atomic.Int64
	Done    atomic.Int64 // complete copies
	Failed  atomic.Int64
	Last    atomic.Int64 // end of the latest complete copy, nanoseconds since 1970; 0: none yet
	Nanos   atomic.Int64 // duration of that copy
}

// Begin counts the beginning of a copy. The caller calls end at the copy's end, and says whether
// the copy is complete.
func (n *Copies) Begin() (end func(complete bool)) {
	if n == nil {
		return func(bool) {}
	}
	begun := time.Now()
	n.Running.Add(1)
	return func(complete bool) {
		n.Running.Add(-1)
		if !complete {
			n.Failed.Add(1)
			return
		}
		n.Done.Add(1)
		n.Nanos.Store(int64(time.Since(begun)))
		n.Last.Store(time.Now().UnixNano())
	}
}
