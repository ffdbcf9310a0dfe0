package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gotycoon/client"
	"gotycoon/db/record"
	"gotycoon/tools/show"
)

// lane is one database on its way from a server to another one.
type lane struct {
	*progressOf
	name       string // on the source, for messages
	persistent bool   // values in the source's log have no expiration time (ktopts=p)
	ordered    bool   // the source's cursor can go on behind a key
	source     *client.DB
	target     *client.DB
	store      storer
	batch      batch
}

// writer writes the changes of all lanes to the target.
type writer struct {
	*call
	target endpoint
	limit  int64 // bytes a second; 0: none
	begin  time.Time
	sent   int64     // bytes
	shown  time.Time // when progress printed its last line
}

// putStored adds a record in the form in which logs and copies hold it.
func (w *writer) putStored(ctx context.Context, l *lane, key, stored []byte) error {
	value, xt := stored, client.Never
	if !l.persistent {
		abs, rest, ok := record.Split(stored)
		if !ok {
			return fmt.Errorf("database %s: the value of %q has no expiration time", l.name, key)
		}
		value = rest
		if abs < record.MaxXT {
			xt = client.Expiry(-max(1, abs))
		}
	}
	return w.put(ctx, l, change{key: string(key), value: slices.Clone(value), xt: xt})
}

// put adds a change to the batch of its lane, and sends the batch when it is full.
func (w *writer) put(ctx context.Context, l *lane, ch change) error {
	size := len(ch.key) + len(ch.value)
	if l.batch.items > 0 && l.batch.bytes+size > batchBytes {
		if err := w.send(ctx, l); err != nil {
			return err
		}
	}
	l.batch.add(ch, size)
	if l.batch.full() {
		return w.send(ctx, l)
	}
	return nil
}

// send sends the batch of a lane.
func (w *writer) send(ctx context.Context, l *lane) error {
	if l.batch.items == 0 {
		return nil
	}
	if err := w.again(ctx, func() error { _, err := l.store.send(ctx, &l.batch); return err }); err != nil {
		return err
	}
	w.sent += int64(l.batch.bytes)
	l.batch = batch{}
	return w.pace(ctx)
}

// clear removes all records of the target's database, and what has not been sent yet.
func (w *writer) clear(ctx context.Context, l *lane) error {
	l.batch = batch{}
	return w.again(ctx, func() error { return l.target.Clear(ctx) })
}

// again repeats a write until the target has carried it out: what migrate writes may be written
// twice. Only a refusal ends it.
func (w *writer) again(ctx context.Context, write func() error) error {
	for wait := firstPause; ; wait = min(2*wait, longPause) {
		err := write()
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, client.ErrNetwork):
			return fmt.Errorf("write to %s: %w", w.target.name, err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if wait == firstPause {
			fmt.Fprintf(w.stderr, "%s: %s does not answer (%v); trying again\n", program, w.target.name, err)
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// pace waits until what was sent is within the limit.
func (w *writer) pace(ctx context.Context) error {
	if w.limit == 0 {
		return nil
	}
	if w.begin.IsZero() {
		w.begin = time.Now()
	}
	due := time.Duration(float64(w.sent) / float64(w.limit) * float64(time.Second))
	if ahead := due - time.Since(w.begin); ahead > 0 {
		return pause(ctx, ahead)
	}
	w.begin, w.sent = time.Now(), 0 // a quiet time gives no right to a burst
	return nil
}

// tell prints a line for people at once.
func (w *writer) tell(format string, args ...any) {
	fmt.Fprintf(w.out, format+"\n", args...)
	_ = w.out.Flush() // the error comes again from the last Flush
}

// How often a status is printed: on a terminal in one line, elsewhere in lines of its own.
const (
	statusTerminal = 500 * time.Millisecond
	statusLines    = 10 * time.Second
)

// progress prints a status now and then.
func (w *writer) progress(format string, args ...any) {
	every, end := statusLines, "\n"
	terminal := show.IsTerminal(w.stdout)
	if terminal {
		every, end = statusTerminal, "\r"
	}
	if time.Since(w.shown) < every {
		return
	}
	w.shown = time.Now()
	text := fmt.Sprintf(format, args...)
	if terminal {
		text += "\x1b[K"
	}
	fmt.Fprint(w.out, text+end)
	_ = w.out.Flush() // the error comes again from the last Flush
}
