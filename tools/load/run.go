package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/internal/histogram"
)

// Result is what runs have found out.
type Result struct {
	Wall time.Duration
	Late histogram.Histogram // from the time a request was due to its sending, where nothing else was in the way

	mu  sync.Mutex // guards the fields below
	ops [removeBulk]Tally
}

// Tally is what was found out about an operation.
type Tally struct {
	Waits   histogram.Histogram // of all requests
	Missing uint64              // requests that found no record
	Refused uint64              // requests that the server has refused
	Why     error               // the first refusal
}

// Tally returns what was found out about an operation.
func (r *Result) Tally(o Operation) *Tally { return &r.ops[o] }

// All returns the sum of all operations.
func (r *Result) All() *Tally {
	all := new(Tally)
	for i := range r.ops {
		all.merge(&r.ops[i])
	}
	return all
}

func (t *Tally) merge(other *Tally) {
	t.Waits.Merge(&other.Waits)
	t.Missing += other.Missing
	t.Refused += other.Refused
	if t.Why == nil {
		t.Why = other.Why
	}
}

// Merge adds what another run has found out.
func (r *Result) Merge(other *Result) {
	r.Wall += other.Wall
	r.Late.Merge(&other.Late)
	for i := range r.ops {
		r.ops[i].merge(&other.ops[i])
	}
}

// PerSecond returns how many requests there were in a second.
func (r *Result) PerSecond(t *Tally) float64 {
	return float64(t.Waits.Total()) / max(r.Wall.Seconds(), time.Microsecond.Seconds())
}

// Count returns how many requests have been answered until now. It may be called during a run.
func (r *Result) Count() (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.ops {
		n += r.ops[i].Waits.Total()
	}
	return n
}

// patience is how long a server may be behind at the end of a run.
const patience = 10 * time.Second

// Run puts the load on the server for its Length, and adds what it finds out to the result. When
// ctx ends, so does the run; then the result is that of the time until then.
func (t *Target) Run(ctx context.Context, result *Result) error {
	conns := make([]net.Conn, t.Conns)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close() // everything has been answered, or there is another error
			}
		}
	}()
	for i := range conns {
		var err error
		if conns[i], err = t.Dial(ctx); err != nil {
			return fmt.Errorf("connection %d: %w", i+1, err)
		}
	}
	within, cancel := context.WithTimeout(ctx, 2*t.Length+patience)
	defer cancel()
	r := &run{Target: t, result: new(Result), protocol: protocols()[t.Protocol], text: valueText(t.Most)}
	stop := context.AfterFunc(within, func() {
		r.over.Store(true)
		for _, c := range conns {
			_ = c.SetDeadline(time.Unix(1, 0)) // waits end with an error
		}
	})
	defer stop()
	var all sync.WaitGroup
	errs := make([]error, len(conns))
	r.begin = time.Now()
	for i, c := range conns {
		all.Go(func() {
			if errs[i] = r.serve(within, c, uint64(i)); errs[i] != nil {
				cancel() // one connection that breaks ends the run
			}
		})
	}
	all.Wait()
	r.result.Wall = time.Since(r.begin)
	result.take(r.result)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(within.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the server is too slow: after %v it had answered %d requests, and others were still waiting", r.result.Wall.Round(time.Second), r.result.Count())
	}
	return firstCause(errs)
}

// take is Merge for a result that others may count at the same time.
func (r *Result) take(other *Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Merge(other)
}

// firstCause returns the error that has ended the other connections too.
func firstCause(errs []error) error {
	var timeout net.Error
	for _, err := range errs {
		if err != nil && !(errors.As(err, &timeout) && timeout.Timeout()) {
			return err
		}
	}
	return errors.Join(errs...)
}

// run is a run under way.
type run struct {
	*Target
	result   *Result
	protocol protocol
	text     string
	begin    time.Time
	tickets  atomic.Uint64 // requests that a connection has taken upon itself
	turn     atomic.Uint64
	over     atomic.Bool
}

// due returns when a request is to be sent, after the beginning, and false if it is none of this
// run. It depends on the number alone: a late request does not move those after it.
func (r *run) due(n uint64) (at time.Duration, ok bool) {
	if r.Rate == 0 {
		at = time.Since(r.begin)
	} else {
		at = time.Duration(float64(n) / r.Rate * float64(time.Second))
	}
	return at, at < r.Length && !r.over.Load()
}

// serve sends requests over a connection, one at a time.
func (r *run) serve(ctx context.Context, c net.Conn, number uint64) error {
	choice := newChooser(&r.Load, number+1, &r.turn, r.text)
	in := bufio.NewReaderSize(c, 32<<10)
	var out []byte
	var q request
	for {
		at, ok := r.due(r.tickets.Add(1) - 1)
		if !ok {
			return nil
		}
		choice.next(&q)
		out = r.protocol.write(out[:0], &r.Load, &q)
		early := time.Until(r.begin.Add(at))
		if r.Rate > 0 && early > 0 {
			if sleep(ctx, early) != nil {
				return nil
			}
		}
		sent := time.Since(r.begin)
		if _, err := c.Write(out); err != nil {
			return err
		}
		found, err := r.protocol.read(in, &q)
		refusal, isRefused := errors.AsType[refused](err)
		if err != nil && !isRefused {
			return err
		}
		r.note(&q, found, time.Since(r.begin)-at, refusal, isRefused)
		if r.Rate > 0 && early > 0 {
			r.noteLate(sent - at)
		}
	}
}

// note notes a request that has been answered.
func (r *run) note(q *request, found outcome, wait time.Duration, refusal refused, isRefused bool) {
	r.result.mu.Lock()
	defer r.result.mu.Unlock()
	t := &r.result.ops[q.operation]
	t.Waits.Add(wait)
	if found.missing {
		t.Missing++
	}
	if isRefused {
		t.Refused++
		if t.Why == nil {
			t.Why = refusal
		}
	}
}

// noteLate notes how late a request was that its connection has waited for.
func (r *run) noteLate(late time.Duration) {
	r.result.mu.Lock()
	defer r.result.mu.Unlock()
	r.result.Late.Add(late)
}

// sleep waits. It returns an error when ctx ends first.
func sleep(ctx context.Context, long time.Duration) error {
	if coarse := long - fineSleep; coarse > 0 {
		begin, timer := time.Now(), time.NewTimer(coarse)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		long -= time.Since(begin)
	}
	if long > 0 {
		sleepFine(long)
	}
	return nil
}
