package script

import (
	"context"
	"errors"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Reasons for which a script is stopped.
var (
	errStopping = errors.New("the server is stopping")
	errTime     = errors.New("the script has run longer than it may")
	errMemory   = errors.New("not enough memory")
)

// leash stops a script. It is the context of an interpreter, which looks at Done before each instruction, and serves one call
// after the other: a context per call would have to be told to every coroutine of the state.
type leash struct {
	context.Context // without values and deadline

	done   chan struct{} // of the running call; changed by the goroutine that runs it
	memory *memory       // nil: not limited

	mu     sync.Mutex // guards the fields below, which whoever stops it changes
	closed bool
	reason error
	timer  *time.Timer
}

func newLeash() *leash { return &leash{Context: context.Background(), done: make(chan struct{})} }

// Done is closed when the script has to stop.
func (h *leash) Done() <-chan struct{} {
	if h.memory != nil {
		h.memory.tick(h)
	}
	return h.done
}

// Err returns why the script has to stop, nil while it need not.
func (h *leash) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reason
}

// pull stops the script that is running.
func (h *leash) pull(reason error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed, h.reason = true, reason
		close(h.done)
	}
}

// begin prepares for a call, which may take so long; 0 means for ever.
func (h *leash) begin(limit time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		h.done, h.closed, h.reason = make(chan struct{}), false, nil
	}
	if h.memory != nil {
		h.memory.begin()
	}
	if limit > 0 {
		done := h.done
		h.timer = time.AfterFunc(limit, func() { h.pullIf(done) })
	}
}

// pullIf stops the call that the timer was set for.
func (h *leash) pullIf(done chan struct{}) {
	h.mu.Lock()
	same := h.done == done
	h.mu.Unlock()
	if same {
		h.pull(errTime)
	}
}

// end is called when the call is over: what comes now need not be stopped.
func (h *leash) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
		h.done, h.closed, h.reason = make(chan struct{}), false, nil // the timer may be on its way
	}
}

// check raises an error in functions of ours that take long, when the script has to stop.
func (h *leash) check(l *lua.LState) {
	select {
	case <-h.Done():
		l.RaiseError("%s", h.Err().Error())
	default:
	}
}

// sleep waits, unless the script has to stop.
func (h *leash) sleep(l *lua.LState, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.done:
		h.check(l)
	}
}

// tooLarge tells whether a text of so many bytes is more than the script may have.
func (h *leash) tooLarge(size float64) bool { return h.memory != nil && size > float64(h.memory.limit) }
