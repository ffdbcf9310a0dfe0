package mem

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"gotycoon/db/engine"
)

// Name names a call.
type Name string

// The calls that Options.Faults is asked about.
const (
	Read     Name = "read"
	Scan     Name = "scan"
	Lane     Name = "lane"
	Write    Name = "write"
	Settle   Name = "settle"
	Begin    Name = "begin"
	Sweep    Name = "sweep"
	Count    Name = "count"
	Snapshot Name = "snapshot"
	ReadLog  Name = "log"
	Take     Name = "take"
	Claim    Name = "claim" // the other calls of Claims
	Lease    Name = "lease" // also each renewal
	Signal   Name = "signal"
	Listen   Name = "listen" // its beginning
)

// Call is a call of a server.
type Call struct {
	Server    string // its address
	Name      Name
	Lane, Seq uint64 // of Write, Settle and a Read that holds; else 0
}

// Fault is what goes wrong with a call. The zero value: nothing.
type Fault struct {
	Delay  time.Duration // before the call reaches the store
	Answer time.Duration // before its answer reaches the server

	// Kind is how the call fails. With Undone it does not reach the store, with Unknown the server
	// gets no answer; only Write, Commit and Take end in Unknown, what
	// may be repeated is Undone.
	Kind engine.Kind
	Away bool // the error says that the engine is away
	// Made says for Unknown that the call has its effect: with Late not at once but so long after
	// the server was told, unless the group, or the Take, is settled before.
	Made bool
	Late time.Duration

	// Commit is the time of a Write between its stamp and its commit, while others wait for its
	// keys and groups of other keys overtake it.
	Commit time.Duration
}

var (
	errCut  = errors.New("the connection was cut")
	errAway = errors.New("the engine cannot be reached")
)

// err returns the error of a call that fails without an effect, or whose answer is lost.
func (f *Fault) err() error {
	e := &engine.Error{Kind: f.Kind, Away: f.Away, Err: errCut}
	if f.Away {
		e.Err = errAway
	}
	return e
}

// fault returns what goes wrong with a call.
func (v *Server) fault(c Call) Fault {
	if v.store.opts.Faults == nil {
		return Fault{}
	}
	c.Server = v.addr
	return v.store.opts.Faults(c)
}

// pause waits for a time. It returns the error of ctx when that ends before.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask makes a call that may be repeated: whatever goes wrong with it is Undone.
func ask[T any](ctx context.Context, v *Server, c Call, call func() (T, error)) (answer T, err error) {
	var none T
	f := v.fault(c)
	if err := pause(ctx, f.Delay); err != nil {
		return none, &engine.Error{Kind: engine.Undone, Away: true, Err: err}
	}
	if f.Kind == engine.Undone {
		return none, f.err()
	}
	if f.Kind != engine.Unknown || f.Made {
		answer, err = call()
	}
	if f.Kind == engine.Unknown {
		f.Kind = engine.Undone
		return none, f.err()
	}
	if pause(ctx, f.Answer) != nil {
		return none, &engine.Error{Kind: engine.Undone, Away: true, Err: ctx.Err()}
	}
	return answer, err
}

// Rates are how often Seeded makes something go wrong, each between 0 and 1.
type Rates struct {
	Undone, Unknown float64
	Delay           float64       // of each of the delays of a Fault
	Longest         time.Duration // of a delay
}

// Seeded returns a function for Options.Faults that decides at random.
func Seeded(seed uint64, r Rates) func(c Call) Fault {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(seed, seed))
	return func(c Call) (f Fault) {
		mu.Lock()
		defer mu.Unlock()
		delay := func() time.Duration {
			if dice.Float64() >= r.Delay {
				return 0
			}
			return time.Duration(dice.Int64N(int64(r.Longest) + 1))
		}
		f.Delay, f.Answer, f.Commit = delay(), delay(), delay()
		switch n := dice.Float64(); {
		case n < r.Undone:
			f.Kind = engine.Undone
		case n < r.Undone+r.Unknown && c.Name != Lease:
			f.Kind, f.Made, f.Late = engine.Unknown, dice.IntN(2) == 0, delay()
		}
		return f
	}
}
