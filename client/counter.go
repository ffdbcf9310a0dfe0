package client

import (
	"context"
	"errors"
	"iter"
	"time"

	"gotycoon/client/wire/counter/frame"
)

// Errors of Counters to test for with errors.Is.
var (
	ErrNoCounter    = errors.New("there is no such counter")
	ErrNotAvailable = errors.New("the resources are not available")          // of Acquire
	ErrNotAcquired  = errors.New("this connection has not acquired as much") // of Release
)

// CounterError is the error of a request that a counter server refused.
type CounterError struct {
	Status  byte
	Message string // from the server
}

// Error returns the server's message.
func (e *CounterError) Error() string { return "counter server: " + e.Message }

// Is reports whether the error is ErrNoCounter, ErrNotAvailable or ErrNotAcquired.
func (e *CounterError) Is(target error) bool {
	switch frame.Status(e.Status) {
	case frame.NotFound:
		return target == ErrNoCounter
	case frame.NotAvailable:
		return target == ErrNotAvailable
	case frame.NotAcquired:
		return target == ErrNotAcquired
	}
	return false
}

// Counters is a connection to a counter server. It belongs to one goroutine.
//
// It owns what it has acquired, until it releases the resources or the connection ends. Any error
// but a *CounterError ends the connection, also the end of a call's context before the reply has
// come: then everything acquired is released, and all further calls fail.
type Counters struct {
	cn      *conn
	opts    Options
	opaque  uint32
	dumping bool
	lost    error // why the connection has ended
}

// DialCounters connects to the counter server at addr, HOST:PORT or HOST. Of the options it uses
// Timeout, TLS and Dial.
func DialCounters(ctx context.Context, addr string, o Options) (*Counters, error) {
	ctx, cancel := o.limit(ctx)
	defer cancel()
	cn, err := o.dial(ctx, withPort(addr, DefaultCounterPort))
	if err != nil {
		return nil, err
	}
	return &Counters{cn: cn, opts: o}, nil
}

// Close ends the connection, which releases everything that it has acquired.
func (c *Counters) Close() error { return c.cn.Close() }

// Noop does nothing. It finds out whether the connection still exists, and with it the acquired
// resources.
func (c *Counters) Noop(ctx context.Context) error {
	_, err := c.call(ctx, frame.Noop, frame.Args{})
	return err
}

// Get returns how much of a counter's resources all connections hold. ErrNoCounter means that the
// counter has not been used lately.
func (c *Counters) Get(ctx context.Context, name string) (uint32, error) {
	return c.number(ctx, frame.Get, frame.Args{Name: []byte(name)})
}

// Acquire takes n of a counter's resources. It returns ErrNotAvailable if all connections together
// would then hold more than maximum. n must be at least 1 and at most maximum, and the name must
// have 1 to 65,535 bytes.
func (c *Counters) Acquire(ctx context.Context, name string, n, maximum uint32) error {
	_, err := c.number(ctx, frame.Acquire, frame.Args{Resources: n, Maximum: maximum, Name: []byte(name)})
	return err
}

// AcquireWait is Acquire with repetitions, at first often, later twice a second, until the
// resources are available or the context ends. If the context ends between two requests, the
// connection stays open.
func (c *Counters) AcquireWait(ctx context.Context, name string, n, maximum uint32) error {
	const first, longest = 10 * time.Millisecond, 500 * time.Millisecond
	for pause := first; ; pause = min(2*pause, longest) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err := c.Acquire(ctx, name, n, maximum)
		if !errors.Is(err, ErrNotAvailable) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// Release gives back n of what this connection has acquired.
func (c *Counters) Release(ctx context.Context, name string, n uint32) error {
	_, err := c.call(ctx, frame.Release, frame.Args{Resources: n, Name: []byte(name)})
	return err
}

// CounterStat is one item of a counter server's statistics.
type CounterStat struct{ Name, Value string }

// Stats returns the statistics in the server's order.
func (c *Counters) Stats(ctx context.Context) ([]CounterStat, error) {
	body, err := c.call(ctx, frame.Stats, frame.Args{})
	if err != nil {
		return nil, err
	}
	list, err := frame.DecodeStats(body)
	if err != nil {
		return nil, c.end(err)
	}
	stats := make([]CounterStat, len(list))
	for i, s := range list {
		stats[i] = CounterStat(s)
	}
	return stats, nil
}

// CounterEntry is one counter of a dump.
type CounterEntry struct {
	Name    string
	Current uint32 // resources that all connections hold
	Maximum uint32 // most that they held in the server's present interval
}

// Dump iterates over all counters, in no order. Other calls fail until it has ended. If the loop
// ends early, Dump reads the rest without calling it.
func (c *Counters) Dump(ctx context.Context) iter.Seq2[CounterEntry, error] {
	return func(yield func(CounterEntry, error) bool) {
		wanted := true
		err := c.talk(ctx, func(cn *conn) error {
			c.dumping = true
			defer func() { c.dumping = false }()
			return c.dump(cn, func(e CounterEntry) { wanted = wanted && yield(e, nil) })
		})
		if err != nil && wanted {
			yield(CounterEntry{}, err)
		}
	}
}

func (c *Counters) dump(cn *conn, visit func(CounterEntry)) error {
	if err := c.send(cn, frame.Dump, frame.Args{}); err != nil {
		return err
	}
	for {
		body, err := c.receive(cn)
		if err != nil || len(body) == 0 {
			return err
		}
		e, err := frame.DecodeEntry(body)
		if err != nil {
			return err
		}
		visit(CounterEntry{string(e.Name), e.Current, e.Maximum})
	}
}
