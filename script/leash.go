package script

import (
	"context"
	"errors"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
)

// Reasons to stop a script.
var (
	errStopping = errors.New("the server is stopping")
	errTime     = errors.New("the script has run longer than it may")
	errMemory   = errors.New("not enough memory")
)

// leash stops a script that has run too long, whose client has gone, that needs too much memory, or
// whose server stops.
//
// It is the context of the interpreter, which calls Done before each instruction. One leash serves
// all calls of an interpreter, one after the other. A new context for each call was considered, but
// would have to be set on every coroutine of the interpreter.
type leash struct {
	context.Context // without values and deadline

	done   chan struct{} // closed to stop the running call, whose goroutine alone replaces it
	memory *memory       // nil: not limited
	heed   db.Heed       // fails when the client of the running call has gone; nil: not asked
	ticks  uint32        // instructions
	spent  int           // steps of Go functions since the last check

	unheeded bool // heed has stopped the call

	mu     sync.Mutex // protects the fields below, which any goroutine may change
	closed bool
	reason error
	timer  *time.Timer
}

func newLeash() *leash { return &leash{Context: context.Background(), done: make(chan struct{})} }

// Done returns a channel that is closed when the script has to stop. The interpreter calls it
// before each instruction, so that Done counts instructions, too, and looks at memory and client
// now and then.
func (h *leash) Done() <-chan struct{} {
	if h.memory != nil && h.memory.tick() {
		h.pull(errMemory)
	}
	if h.ticks++; h.ticks%ticksPerHeed == 0 {
		h.listen()
	}
	return h.done
}

const (
	ticksPerHeed  = 1 << 12 // instructions between looks at the client
	stepsPerCheck = 1 << 17 // steps of Go functions between checks: less than 5 ms
)

// listen stops the script if nobody waits for its result any more.
func (h *leash) listen() {
	if h.heed == nil {
		return
	}
	if err := h.heed(); err != nil {
		h.unheeded = true
		h.pull(err)
	}
}

// ask is the db.Heed of operations that the script makes. It returns why the script has to stop.
func (h *leash) ask() error {
	h.listen()
	return h.Err()
}

// Err returns why the script has to stop, nil if it may go on.
func (h *leash) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reason
}

// pull stops the script that is running.
func (h *leash) pull(reason error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pullLocked(reason)
}

// pullLocked is pull for callers that hold mu.
func (h *leash) pullLocked(reason error) {
	if !h.closed {
		h.closed, h.reason = true, reason
		close(h.done)
	}
}

// begin prepares for a call that may take as long as limit; 0 means no limit.
func (h *leash) begin(limit time.Duration, heed db.Heed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heed, h.spent, h.unheeded = heed, 0, false
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

// pullIf stops the call that the timer was set for, unless it is over.
func (h *leash) pullIf(done chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done == done { // under mu: a late timer must not stop the next call
		h.pullLocked(errTime)
	}
}

// end ends the supervision of a call.
func (h *leash) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heed = nil
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
		// If the timer has fired, pullIf may be waiting for mu. It must find another done.
		h.done, h.closed, h.reason = make(chan struct{}), false, nil
	}
}

// work counts steps of a Go function that may need many, and calls check now and then. A step takes
// some nanoseconds.
func (h *leash) work(l *lua.LState, steps int) {
	if h.spent += steps; h.spent >= stepsPerCheck {
		h.spent = 0
		h.listen()
		h.check(l)
	}
}

// check raises an error if the script has to stop. Go functions that take long call it.
func (h *leash) check(l *lua.LState) {
	select {
	case <-h.Done():
		l.RaiseError("%s", h.Err().Error())
	default:
	}
}

// sleepSlice is the time between two looks at the client while a script waits.
const sleepSlice = 50 * time.Millisecond

// sleep waits, or raises an error as soon as the script has to stop.
func (h *leash) sleep(l *lua.LState, d time.Duration) {
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if left <= 0 {
			return
		}
		timer := time.NewTimer(min(left, sleepSlice))
		select {
		case <-timer.C:
			h.listen()
		case <-h.done:
		}
		timer.Stop()
		h.check(l)
	}
}

// moveSteps is the cost of moving a value within a table, in steps of the leash.
const moveSteps = 4
