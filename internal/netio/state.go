package netio

import "errors"

// ErrCalled is returned by WaitByte instead of waiting, once after Call.
var ErrCalled = errors.New("the connection was called")

// The states of a connection that may rest in a loop. They say whom it belongs to (see the essay in
// loop.go), and what its owner has to do before nobody owns it. The columns are what changes them:
// news of its socket (rouse), others that want something of its owner (Call), and its owner, who
// wants it to rest (park).
//
//	state    belongs to              rouse              Call                      park
//	parked   nobody                  running, is owned  called, has an owner now
//	running  its owner               again              called                    parked
//	again    its owner, who reads    again              called                    running, fails
//	         once more
//	called   its owner, who reads    called             called                    running, fails: its
//	         once more and returns                                                owner is told
//	         ErrCalled
//
// So each of rouse and Call is followed by a look of the owner that begins after it, however they
// meet with park. Several of them may share a look.
const (
	running uint32 = iota
	parked
	again
	called
)

// rouse makes a parked connection the caller's. News of a running one are noted.
func (r *resting) rouse() bool {
	for {
		switch r.state.Load() {
		case parked:
			if r.state.CompareAndSwap(parked, running) {
				return true
			}
		case running:
			if r.state.CompareAndSwap(running, again) {
				return false
			}
		default:
			return false
		}
	}
}

// park makes the connection nobody's. It fails if there are news, or the connection was called.
func (c *Conn) park() bool {
	term, settler := c.term, c.settler
	c.term, c.settler = 0, nil
	if c.state.CompareAndSwap(running, parked) {
		return true
	}
	c.called = c.state.Swap(running) == called
	c.term, c.settler, c.drained = term, settler, false
	return false
}

// Call has WaitByte return ErrCalled, after the bytes that have come, in the goroutine that serves
// the connection: others have something for that goroutine. If the connection rests, one is made.
// Call does nothing to a connection that waits in a goroutine for good (InLoop). Any goroutine
// may call Call.
func (c *Conn) Call() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bare != nil && c.state.Swap(called) == parked {
		c.drained, c.term = false, 0
		go c.resume()
	}
}

// InLoop reports whether the connection rests in a loop between two requests. Settle ends that. Any
// goroutine may call InLoop.
func (c *Conn) InLoop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bare != nil
}
