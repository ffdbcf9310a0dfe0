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
	prefix     []byte // a part of the request
	keys       bool   // values are left out
	heartbeat  time.Duration
}

func (w *watching) end() {
	w.Close()
	w.all.Add(-1)
}
