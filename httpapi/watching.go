package httpapi

import "time"

// watching is a watch that a call has begun.
type watching struct {
	Watch
	leave func() // gives the place among the server's watches back, and the memory of the request

	number     int // of the database
	persistent bool
	prefix     []byte // a part of the request
	keys       bool   // values are left out
	heartbeat  time.Duration
}

func (w *watching) end() {
	w.Close()
	w.leave()
}
