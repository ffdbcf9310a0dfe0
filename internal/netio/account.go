package netio

import (
	"errors"
	"sync/atomic"

	"gotycoon/internal/pieces"
)

// ErrBusy is returned by Fill, Need, Hold and Flush when there is no memory for the request now.
var ErrBusy = errors.New("there is no memory for a request of this size now")

const (
	// smallRequest is how many bytes a request may hold and count as small: small requests have a reserve of their own, so that large
	// ones, however many, never lead to their refusal.
	smallRequest = 64 << 10
	reservePart  = 4 // the reserve is so much of the budget
)

// One request may hold so much of the budget.
const shareOf, shareIn = 3, 4

// account is the memory that the requests of all connections may hold together, of all ports: there is one for a process. A request
// takes bytes of it before it makes an object, not afterwards, and for every object: the buffer that it is read into, the table of its
// rows, the keys that it has found, its reply. What is refused is not made.
//
// The first 16 KiB of each connection's buffers do not count: how many connections there may be bounds them.
//
// Example: the budget is 768 MiB. A PUT of 250 MiB holds 500 MiB, since what is made of its body counts too. A second one is told to
// come again (ErrBusy), and a PUT of 300 MiB could never be held, because a request may have three quarters of the budget (ErrTooLarge).
// Requests of up to 64 KiB go on meanwhile.
type account struct {
	budget atomic.Int64 // of held; 0: none
	held   atomic.Int64
	closed atomic.Bool  // nothing more may be held but by small requests
	denied atomic.Int64 // how often something was refused
}

// SetBudget sets how many bytes the requests of all connections may hold together; 0: any number.
func (a *account) SetBudget(bytes int64) { a.budget.Store(bytes) }

// SetClosed tells whether requests may not become large at all, since the memory is used up.
func (a *account) SetClosed(closed bool) { a.closed.Store(closed) }

// Held returns the bytes that requests hold.
func (a *account) Held() int64 { return a.held.Load() }

// Denied returns how often a request was refused for want of memory.
func (a *account) Denied() int64 { return a.denied.Load() }

// Reserve takes n bytes and reports whether they were there. A large request needs as many to be there beside what others hold; a small
// one may use the reserve.
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

// share is how many bytes one request may hold; 0: any number.
func (a *account) share() int64 { return a.budget.Load() / shareIn * shareOf }

// refuse counts a refusal.
func (a *account) refuse(err error) error {
	a.denied.Add(1)
	return err
}

// Hold takes n bytes for the request being served, until the next one. ErrBusy says that they are not there now, and ErrTooLarge that
// the request can never have so many: in both cases it has to be refused.
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

// Overdraw makes Hold and Keep take bytes, whether they are there or not, until the request is over, and lets its reply leave whatever memory
// there is: the request has removed a record, and a reply that was refused would lose the record to its client.
func (c *Conn) Overdraw() { c.overdrawn, c.precious = true, true }

// Declare returns an error of Hold if a request of n bytes could not be read now. It takes nothing.
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

// Keep takes n bytes until the connection ends, or gives them back where n is negative: for what it keeps between requests.
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

// KeepInTurn is Keep for a connection that comes back until it has its bytes, and has to get them some day. Bytes that the account never
// has at a time, and any bytes while the account is closed, are there when others hold no more than small requests do.
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

// LetGo takes back a Hold of n bytes, before the next request.
func (c *Conn) LetGo(n int) {
	if c.opts.Limits != nil {
		c.letGo(c.held - int64(n))
	}
}

// force takes n bytes, whether they are there or not.
func (c *Conn) force(n int64) {
	if c.opts.Limits != nil && n > 0 {
		c.opts.Limits.held.Add(n)
		c.held += n
	}
}

// holdReply counts a large reply of a size that its client does not take at once: all is what is held for the reply then, and n of it what
// has to be given back when it is sent.
func (c *Conn) holdReply(size int) (n, all int, err error) {
	if all = max(cap(c.Out), size); all <= readSize {
		return 0, 0, nil
	}
	if n = all - int(c.held); n <= readSize { // what the request holds may be this reply
		return 0, all, nil
	}
	if c.precious {
		c.force(int64(n))
		return n, all, nil
	}
	return n, all, c.Hold(n)
}

// letGo gives back what is held but for n bytes.
func (c *Conn) letGo(n int64) {
	if n = max(n, c.kept); c.held > n {
		c.opts.Limits.held.Add(n - c.held)
		c.held = n
	}
}

// Append appends parts to dst. What dst grows by is held before it is made; *held is what the request holds for dst so far.
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
