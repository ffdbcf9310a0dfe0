package httpapi

import "time"

// watching is a watch that a call has begun.
type watching struct {
	Watch
	number     int // of the database
	persistent bool
	prefix     []byte
	keys       bool // values are left out
	heartbeat  time.Duration
}

// endWatch ends the watch of a call, if it has begun one.
func (c *call) endWatch() {
	if c.watch != nil {
		c.watch.Close()
		c.opts.watching.Add(-1)
		c.watch = nil
	}
}
