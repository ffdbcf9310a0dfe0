package netio

import (
	"errors"
	"sync/atomic"

	"gotycoon/internal/pieces"
)

// ErrBusy is returned by Fill, Need, Flush, Declare, Hold, Keep and KeepInTurn when there is no
// memory for the request now. A later attempt may succeed.
var ErrBusy = errors.New("there is no memory for a request of this size now")

const (
	// smallRequest is how many bytes a request may hold and still count as small. Small requests
	// have a reserve of their own, so that large requests, however many, never cause their refusal.
	smallRequest = 64 << 10

	reservePart = 4 // the reserve is this part of the budget: a quarter

	shareOf, shareIn = 3, 4 // one request may hold three quarters of the budget
)

// account counts the memory that the requests of all connections of all ports hold together: a
// process has one account. A request takes bytes from the account before it makes an object, and
// for every object: the buffer that it is read into, the table of its rows, the keys that it has
// found, its reply. If the bytes are refused, the object is not made.
//
// The first 16 KiB of each connection's buffers do not count: the limit of connections bounds them.
//
// Example: the budget is 768 MiB. A PUT of 250 MiB holds 500 MiB, because the record that is made
// of its body counts too. A second such PUT is told to come again (ErrBusy). A PUT of 300 MiB would
// hold 600 MiB and is refused for good (ErrTooLarge), because one request may hold three quarters
// of the budget, 576 MiB. Requests of up to 64 KiB are served meanwhile.
type account struct {
	budget atomic.Int64 // the most that held may be; 0: any number
	held   atomic.Int64
	parked atomic.Int64 // of held: by requests that wait, see Park
	closed atomic.Bool  // only small requests may hold more
	denied atomic.Int64 // how often a request was refused
}

// SetBudget sets how many bytes the requests of all connections may hold together; 0: any number.
func (a *account) SetBudget(bytes int64) { a.budget.Store(bytes) }

// SetClosed forbids large requests, because the memory of the machine is used up, or allows them
// again.
func (a *account) SetClosed(closed bool) { a.closed.Store(closed) }

// Held returns the bytes that requests hold.
func (a *account) Held() int64 { return a.held.Load() }

// Denied returns how often a request was refused for want of memory.
func (a *account) Denied() int64 { return a.denied.Load() }

// Reserve takes n bytes if the budget has room for them, and reports whether it had. Only small
// requests may use the reserve beyond the budget.
func (a *account) Reserve(n int64, small bool) bool {
	budget := a.budget.Load()
	if small {
		budget += budget / reservePart
	} else if a.closed.Load() {
		return false
	}
	for {
		held := a.held.Load()
		if budget > 0 && held+n > budget {
			return false
		}
		if a.held.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

// Release gives n bytes back.
func (a *account) Release(n int64) { a.held.Add(-n) }

// share returns how many bytes one request may hold; 0: any number.
func (a *account) share() int64 { return a.budget.Load() / shareIn * shareOf }

// refuse counts a refusal.
func (a *account) refuse(err error) error {
	a.denied.Add(1)
	return err
}

// Hold takes n bytes for the request being served, until the next request. After an error the
// request has to be refused: with ErrBusy the bytes are not free now, with ErrTooLarge no request
// may ever hold so many.
func (c *Conn) Hold(n int) error {
	l := c.opts.Limits
	if l == nil || n <= 0 {
		return nil
	}
	if c.overdrawn {
		c.force(int64(n))
		return nil
	}
	sum := c.held + int64(n)
	if most := l.share(); most > 0 && sum-c.kept > max(most, smallRequest) {
		return l.refuse(ErrTooLarge)
	}
	if !l.Reserve(int64(n), sum-c.kept <= smallRequest) {
		return l.refuse(ErrBusy)
	}
	c.held = sum
	return nil
}

// Overdraw lets Hold, Keep and the reply take bytes beyond the budget, until the request is over.
// It is for a request that has removed a record and returns it: if the reply were refused, the
// record would be lost.
func (c *Conn) Overdraw() { c.overdrawn, c.precious = true, true }

// Declare returns ErrTooLarge or ErrBusy for a request of n bytes that could never be held, or not
// now. It takes nothing, so a request that it lets pass may still be refused by Hold.
func (c *Conn) Declare(n int) error {
	l := c.opts.Limits
	if l == nil || n <= keepSize {
		return nil
	}
	if n > c.Largest(c.opts.MaxRequest) {
		return ErrTooLarge
	}
	cost, most := costOf(n), l.share()
	switch {
	case most > 0 && cost > most:
		return l.refuse(ErrTooLarge)
	case l.closed.Load(), most > 0 && l.held.Load()-(c.held-c.kept)+cost > l.budget.Load():
		return l.refuse(ErrBusy)
	}
	return nil
}

// Keep takes n bytes until the connection ends, for objects that it keeps between requests. A
// negative n gives bytes back.
func (c *Conn) Keep(n int) error {
	l := c.opts.Limits
	switch {
	case l == nil:
		return nil
	case n < 0 || c.overdrawn:
		l.held.Add(int64(n))
	case n > 0 && !l.Reserve(int64(n), c.kept+int64(n) <= smallRequest):
		return l.refuse(ErrBusy)
	}
	c.held += int64(n)
	c.kept += int64(n)
	return nil
}

// KeepInTurn is Keep for a connection that calls it again and again until it succeeds. Such a
// connection must get its bytes some day, even more than the whole budget, and even while the
// account is closed. It gets them at the latest when all other connections together hold no more
// than the reserve.
func (c *Conn) KeepInTurn(n int) error {
	l := c.opts.Limits
	if l == nil {
		return nil
	}
	held := l.held.Load()
	alone := held-c.held <= l.budget.Load()/reservePart && l.held.CompareAndSwap(held, held+int64(n))
	if !alone && !l.Reserve(int64(n), false) {
		return ErrBusy
	}
	c.held += int64(n)
	c.kept += int64(n)
	return nil
}

// LetGo gives back n bytes that Hold took, before the next request.
func (c *Conn) LetGo(n int) {
	if c.opts.Limits != nil {
		c.letGo(c.held - int64(n))
	}
}

// Large reports whether the request being served holds more than a small one. A call that waits for
// long and has no use for a large request refuses it.
func (c *Conn) Large() bool { return c.held-c.kept > smallRequest }

// Park is called before a request waits for what other clients do, which may take for ever. It
// fails with ErrBusy when the requests that wait so would hold more than a quarter of the budget:
// clients that wait with requests in hand would leave no memory for the requests of all others. A
// request of 16 KiB holds nothing. The caller calls resume when the wait is over.
func (c *Conn) Park() (resume func(), err error) {
	c.Leave()
	l, n := c.opts.Limits, c.held-c.kept
	if l == nil || n <= 0 {
		return func() {}, nil
	}
	most := l.budget.Load() / reservePart
	for {
		parked := l.parked.Load()
		if most > 0 && parked+n > most {
			return nil, l.refuse(ErrBusy)
		}
		if l.parked.CompareAndSwap(parked, parked+n) {
			return func() { l.parked.Add(-n) }, nil
		}
	}
}

// force takes n bytes, beyond the budget if need be.
func (c *Conn) force(n int64) {
	if c.opts.Limits != nil && n > 0 {
		c.opts.Limits.held.Add(n)
		c.held += n
	}
}

// holdReply takes bytes for a large reply that the client does not take at once. all is how many
// bytes the reply holds then, together with the bytes that the request has held for it before. n is
// how many of them are to be given back when the reply is sent.
func (c *Conn) holdReply(size int) (n, all int, err error) {
	if all = max(cap(c.Out), size); all <= readSize {
		return 0, 0, nil
	}
	// The request has held most of these bytes for this reply.
	if n = all - int(c.held); n <= readSize {
		return 0, all, nil
	}
	if c.precious {
		c.force(int64(n))
		return n, all, nil
	}
	return n, all, c.Hold(n)
}

// letGo gives back all but n of the held bytes. Bytes that Keep took stay.
func (c *Conn) letGo(n int64) {
	if n = max(n, c.kept); c.held > n {
		c.opts.Limits.held.Add(n - c.held)
		c.held = n
	}
}

// Append appends parts to dst. If dst has to become larger, the bytes are taken from the account
// first; *held is how many the request holds for dst.
func (c *Conn) Append(dst []byte, held *int, parts ...[]byte) ([]byte, error) {
	size := len(dst)
	for _, part := range parts {
		size += len(part)
	}
	if size > cap(dst) {
		room := max(size, growFactor*cap(dst))
		if err := c.Hold(room); err != nil {
			return dst, err
		}
		dst = pieces.Append(make([]byte, 0, room), dst)
		c.LetGo(*held)
		*held = room
	}
	for _, part := range parts {
		dst = pieces.Append(dst, part)
	}
	return dst, nil
}
