package netio

import (
	"errors"
	"sync/atomic"
	"time"
)

// ErrSlow is returned by Fill when a whole request has taken longer than Limits allow. When a
// single wait takes too long, Fill returns os.ErrDeadlineExceeded instead.
var ErrSlow = errors.New("the request comes too slowly")

// leastRate is how many bytes of a request must come in a second once the time for a request
// (SetRequest) is over.
const leastRate = 1 << 10

// heldFor is how long a connection may hold its memory once the time for a request is over: a large
// request or reply has to move so fast that it ends within heldFor. Otherwise a client that sends
// or takes a few bytes at a time could keep the memory from others for hours.
const heldFor = 10 * time.Minute

// Limits are shared by all connections of a server. They may be changed at any time; a change
// counts from the next wait of a connection on. The zero value has no limits.
type Limits struct {
	timeout atomic.Int64 // of one wait; 0: Options.Timeout
	idle    atomic.Int64 // between requests; 0: none
	request atomic.Int64 // from the first wait for the rest of a request; 0: none
	answer  atomic.Int64 // for which a request is served; 0: none
	largest atomic.Int64 // bytes of a request; 0: Options.MaxRequest

	standing atomic.Pointer[standing] // nil: the server is in no cluster

	account
	turns turns
	lane  lane // of requests that work for long
}

// SetTimeout sets the limit of one wait for more bytes of a request, or for send space (-tout).
func (l *Limits) SetTimeout(d time.Duration) { l.timeout.Store(int64(d)) }

// Timeout returns the limit of SetTimeout.
func (l *Limits) Timeout() time.Duration { return time.Duration(l.timeout.Load()) }

// Idle returns the limit of SetIdle.
func (l *Limits) Idle() time.Duration { return time.Duration(l.idle.Load()) }

// SetIdle sets how long a client may wait with its next request; 0: for ever.
func (l *Limits) SetIdle(d time.Duration) { l.idle.Store(int64(d)) }

// SetRequest sets how long a request may take to arrive, from the first wait for its rest on. Each
// KiB that arrives adds a second; for a large request more bytes are needed for a second, see
// heldFor. The same limit holds for a client that takes a large reply. 0: for ever, as long as some
// bytes come within each timeout.
func (l *Limits) SetRequest(d time.Duration) { l.request.Store(int64(d)) }

// SetAnswer sets how long a request may be served; 0: for ever.
func (l *Limits) SetAnswer(d time.Duration) { l.answer.Store(int64(d)) }

// SetLargest sets how many bytes a request may have; 0: as many as its protocol allows.
func (l *Limits) SetLargest(bytes int64) { l.largest.Store(bytes) }

// timeout returns the limit of one wait.
func (c *Conn) timeout() time.Duration {
	if own := c.opts.Timeout; own != 0 || c.opts.Limits == nil {
		return own
	}
	return time.Duration(c.opts.Limits.timeout.Load())
}

// Restart begins the time of a request anew. Protocols in which a request lasts as long as the
// connection call it.
func (c *Conn) Restart() { c.began, c.came = time.Time{}, 0 }

// deadline returns when the next bytes of the request must have come. slow says that the time of
// the whole request ends then; otherwise it is the time of one wait.
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

// moveTime returns the time that moved bytes of a request or reply may take, while size bytes of
// memory are held for it.
func moveTime(moved, size int64) time.Duration {
	rate := max(leastRate, size/int64(heldFor/time.Second))
	return time.Duration(moved) * time.Second / time.Duration(rate)
}
