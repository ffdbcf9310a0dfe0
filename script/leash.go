package script

import (
	"context"
	"errors"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
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
	heed   db.Heed       // of the running call; nil: nobody waits for it
	ticks  uint32        // instructions
	spent  int           // steps of functions of ours since the last check

	unheeded bool // heed has stopped the call

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
	if h.ticks++; h.ticks%ticksPerHeed == 0 {
		h.listen()
	}
	return h.done
}

const (
	ticksPerHeed  = 1 << 12 // instructions between looks at the client
	stepsPerCheck = 1 << 17 // steps of functions of ours between checks: less than 5 ms
)

// listen stops the script when nobody waits for it any more.
func (h *leash) listen() {
	if h.heed == nil {
		return
	}
	if err := h.heed(); err != nil {
		h.unheeded = true
		h.pull(err)
	}
}

// ask is the Heed of what the script has a database do: the reasons to stop the script, and those of the client.
func (h *leash) ask() error {
	h.listen()
	return h.Err()
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
	h.pullLocked(reason)
}

// pullLocked is pull for those who hold mu.
func (h *leash) pullLocked(reason error) {
	if !h.closed {
		h.closed, h.reason = true, reason
		close(h.done)
	}
}

// begin prepares for a call, which may take so long; 0 means for ever.
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

// pullIf stops the call that the timer was set for.
func (h *leash) pullIf(done chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done == done { // in one step: the next call must not be stopped for this one
		h.pullLocked(errTime)
	}
}

// end is called when the call is over: what comes now need not be stopped.
func (h *leash) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heed = nil
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
		h.done, h.closed, h.reason = make(chan struct{}), false, nil // the timer may be on its way
	}
}

// work counts steps of a function of ours that may take many, and is check now and then. Steps take some nanoseconds.
func (h *leash) work(l *lua.LState, steps int) {
	if h.spent += steps; h.spent >= stepsPerCheck {
		h.spent = 0
		h.listen()
		h.check(l)
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

// sleepSlice is the time between two looks at the client while a script sleeps.
const sleepSlice = 50 * time.Millisecond

// sleep waits, unless the script has to stop.
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
