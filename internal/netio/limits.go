package netio

import (
	"errors"
	"sync/atomic"
	"time"
)

// ErrSlow is returned by Fill when a request has taken longer than Limits allow. It is no timeout of one wait.
var ErrSlow = errors.New("the request comes too slowly")

// leastRate is how many bytes of a request must come in a second, once its time is over.
const leastRate = 1 << 10

// heldFor is for how long the memory that a connection holds may be held once the time of the request is over: a large request, or the
// reply to one, has to move as fast as that demands, so that a client that drips cannot keep the memory from others for hours.
const heldFor = 10 * time.Minute

// Limits are those of all connections of a server. They may change while connections use them: the next wait has the new ones. The
// zero value has no limits.
type Limits struct {
	timeout atomic.Int64 // of one wait; 0: Options.Timeout
	idle    atomic.Int64 // between requests; 0: none
	request atomic.Int64 // from the first wait for the rest of a request; 0: none
	answer  atomic.Int64 // for which a request is served; 0: none
	largest atomic.Int64 // bytes of a request; 0: Options.MaxRequest

	account
}

// SetTimeout sets the limit of one wait for more bytes of a request, or for send space (-tout).
func (l *Limits) SetTimeout(d time.Duration) { l.timeout.Store(int64(d)) }

// SetIdle sets how long a client may wait with its next request; 0: for ever.
func (l *Limits) SetIdle(d time.Duration) { l.idle.Store(int64(d)) }

// SetRequest sets how long a request may take to arrive, once the server has to wait for its rest: a second more for every KiB of it
// that has come, and less than that for a large one, see heldFor. The same holds for a large reply that its client has to take.
// 0: for ever, as long as some of it comes within each timeout.
func (l *Limits) SetRequest(d time.Duration) { l.request.Store(int64(d)) }

// SetAnswer sets how long a request may be served; 0: for ever.
func (l *Limits) SetAnswer(d time.Duration) { l.answer.Store(int64(d)) }

// SetLargest sets how many bytes a request may have; 0: what the protocol allows.
func (l *Limits) SetLargest(bytes int64) { l.largest.Store(bytes) }

// timeout is the limit of one wait.
func (c *Conn) timeout() time.Duration {
	if own := c.opts.Timeout; own != 0 || c.opts.Limits == nil {
		return own
	}
	return time.Duration(c.opts.Limits.timeout.Load())
}

// Largest returns how many bytes a request may have, of those that its protocol allows.
func (c *Conn) Largest(allowed int) int {
	if l := c.opts.Limits; l != nil {
		if most := l.largest.Load(); most > 0 && most < int64(allowed) {
			return int(most)
		}
	}
	return allowed
}

// Restart begins the time of a request anew, for protocols in which one lasts as long as the connection.
func (c *Conn) Restart() { c.began, c.came = time.Time{}, 0 }

// deadline is when the next bytes of the request must have come. slow tells that it is the request's time that ends then, and not that
// of one wait.
func (c *Conn) deadline(now time.Time) (at time.Time, slow bool) {
	at = now.Add(c.timeout())
	if c.opts.Limits == nil || c.opts.Patient {
		return at, false
	}
	whole := time.Duration(c.opts.Limits.request.Load())
	if whole <= 0 {
		return at, false
	}
	if c.began.IsZero() {
		c.began = now
	}
	end := c.began.Add(whole + moveTime(c.came, (c.held-c.kept)/bytesCounted))
	if end.Before(at) {
		return end, true
	}
	return at, false
}

// moveTime is the time in which so many bytes have to come or go, where as many as size are held for it.
func moveTime(moved, size int64) time.Duration {
	rate := max(leastRate, size/int64(heldFor/time.Second))
	return time.Duration(moved) * time.Second / time.Duration(rate)
}

// sendEnd is when the next bytes of a reply must have been taken, of which sent have been since began, and held are held.
func (c *Conn) sendEnd(began time.Time, sent, held int) time.Time {
	at := time.Now().Add(c.timeout())
	if c.opts.Limits == nil || c.opts.Patient || held == 0 {
		return at
	}
	if whole := time.Duration(c.opts.Limits.request.Load()); whole > 0 {
		if end := began.Add(whole + moveTime(int64(sent), int64(held))); end.Before(at) {
			return end
		}
	}
	return at
}

// idleEnd is when the next request must have begun, zero for never.
func (c *Conn) idleEnd() time.Time {
	if c.opts.Limits == nil || c.opts.Patient {
		return time.Time{}
	}
	idle := time.Duration(c.opts.Limits.idle.Load())
	if idle <= 0 {
		return time.Time{}
	}
	return time.Now().Add(idle)
}
