package netio

import (
	"sync/atomic"
	"time"
)

// Limits are those of all connections of a server. They may change while connections use them: the next wait has the new ones. The
// zero value has no limits.
type Limits struct {
	timeout atomic.Int64 // of one wait; 0: Options.Timeout
}

// SetTimeout sets the limit of one wait for more bytes of a request, or for send space (-tout).
func (l *Limits) SetTimeout(d time.Duration) { l.timeout.Store(int64(d)) }

// timeout is the limit of one wait.
func (c *Conn) timeout() time.Duration {
	if own := c.opts.Timeout; own != 0 || c.opts.Limits == nil {
		return own
	}
	return time.Duration(c.opts.Limits.timeout.Load())
}
