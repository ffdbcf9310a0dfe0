package httpapi

import (
	"sync/atomic"
	"time"
)

// watching is a watch that a call has begun.
type watching struct {
	Watch
	all *atomic.Int64 // watches of the server under way: this one counts

	number     int // of the database
	persistent bool
	prefix     []byte
	keys       bool // values are left out
	heartbeat  time.Duration
}

// end ends a watch, if there is one.
func (w *watching) end() {
	if w != nil {
		w.Close()
		w.all.Add(-1)
	}
}
