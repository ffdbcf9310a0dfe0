package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

const (
	fillRecords = 1000    // of a bulk
	fillBytes   = 4 << 20 // of its values, unless one value is larger
)

// Fill stores the records that the load asks for, so that none is missing. done is called with the
// number of records after each bulk.
func (t *Target) Fill(ctx context.Context, done func(n int)) error {
	if t.has(Get, GetBulk) {
		n := max(1, min(fillRecords, fillBytes/uint64(max(1, t.Most))))
		if err := t.bulks(ctx, SetBulk, Set, n, done); err != nil {
			return fmt.Errorf("storing the records: %w", err)
		}
	}
	if t.has(Increment) && t.Protocol == "memcached" { // whose counters must be there
		if err := t.bulks(ctx, SetBulk, Increment, fillRecords, done); err != nil {
			return fmt.Errorf("storing the counters: %w", err)
		}
	}
	return nil
}

// Remove removes everything that the load may have stored.
func (t *Target) Remove(ctx context.Context, done func(n int)) error {
	for _, family := range []Operation{Set, Increment} {
		if family == Set && t.has(Set, Get, SetBulk, GetBulk) || family == Increment && t.has(Increment) {
			if err := t.bulks(ctx, removeBulk, family, fillRecords, done); err != nil {
				return fmt.Errorf("removing the records whose keys begin with %q: %w", t.Prefix, err)
			}
		}
	}
	return nil
}

// has reports whether the load has one of these operations.
func (t *Target) has(any ...Operation) bool {
	return slices.ContainsFunc(t.Mix, func(s Share) bool { return slices.Contains(any, s.Operation) })
}

// bulks sends bulks for all keys of a family, one after the other.
func (t *Target) bulks(ctx context.Context, o, family Operation, size uint64, done func(n int)) error {
	c, err := t.Dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // ends the wait
	defer stop()
	choice := newChooser(&t.Load, 0, new(atomic.Uint64), valueText(t.Most))
	in, p := bufio.NewReaderSize(c, 32<<10), protocols()[t.Protocol]
	var q request
	var out []byte
	for first := uint64(0); first < t.Keys; first += size {
		n := min(size, t.Keys-first)
		choice.keys(&q, o, family, first, n)
		if family == Increment {
			q.value = "0"
		}
		out = p.write(out[:0], &t.Load, &q)
		if _, err = c.Write(out); err == nil {
			_, err = p.read(in, &q)
		}
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		done(int(n))
	}
	return nil
}
