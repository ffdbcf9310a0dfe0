package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gotycoon/db/engine"
)

const (
	firstPause = time.Millisecond       // before a group is tried again that failed twice
	lastPause  = 100 * time.Millisecond // the pauses double up to this one
)

// carryOut makes a group of the chosen tasks and answers them, or puts them back to the front. It
// reports whether the engine has made the group.
func (l *lane) carryOut() bool {
	l.group = slices.DeleteFunc(l.group, (*task).left)
	if len(l.group) == 0 {
		return true
	}
	if l.late {
		defer l.attend()()
	}
	l.g.trial.begins(l)
	if err := l.read(); err != nil {
		if settles(err) {
			l.g.trial.drops(l)
		}
		l.failed(err)
		return false
	}
	began := time.Now()
	l.group = slices.DeleteFunc(l.group, func(t *task) bool {
		l.g.stats.wait.Observe(int64(began.Sub(t.arrived)))
		return !t.runs(&l.view)
	})
	if !l.broad {
		l.postpone()
	}
	g, changes := l.make()
	if !changes {
		l.g.trial.givesUp(l)
		if l.hold {
			_, _ = call(l.g, func(ctx context.Context) (engine.Result, error) { // which ends the hold
				return l.g.engine.Write(ctx, &engine.Group{ID: g.ID})
			})
		}
		l.finish(&engine.Result{})
		return true
	}
	result, err := l.write(g)
	if err != nil {
		l.failed(err)
		return false
	}
	l.finish(&result)
	return true
}

// read reads the keys of the group that bodies want, and gets the ID of the group. Where values
// turn out to be large, the group gets smaller: those of a group of hundreds may be more than the
// memory.
func (l *lane) read() error {
	if l.id.Lane == 0 || l.id.Seq == engine.LastSeq {
		n, err := call(l.g, l.g.engine.Lane)
		if err != nil {
			return err
		}
		l.known.forget() // what it knows are revisions of the former one
		l.id = engine.GroupID{Lane: n}
	}
	l.id.Seq++
	const room = 8 // times a group's bytes: most groups have keys of all sizes
	for most := fitting(room*l.g.opts.GroupBytes, l.count()); ; {
		recs, err := l.readKeys(most)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(recs, func(r engine.Record) bool { return r.Left > 0 }) {
			l.view.fill(recs)
			return nil
		}
		if most, err = l.narrow(recs); err != nil {
			return err
		}
	}
}

// count returns how many keys the group has.
func (l *lane) count() (n int) {
	for _, t := range l.group {
		n += len(t.keys)
	}
	return n
}

// narrow keeps those tasks of the group whose values fit, and puts back the others. It returns up
// to which size values are to be read then.
func (l *lane) narrow(recs []engine.Record) (most int, err error) {
	n, bytes := 0, 0
	for ; n < len(l.group); n++ {
		more, largest := 0, most
		for _, k := range l.group[n].keys {
			i, ok := slices.BinarySearchFunc(recs, k, func(r engine.Record, k engine.Key) int { return engine.Compare(r.Key, k) })
			if ok {
				size := len(recs[i].Value) + recs[i].Left
				more, largest = more+size, max(largest, size)
			}
		}
		if n > 0 && bytes+more > l.g.opts.GroupBytes {
			break
		}
		bytes, most = bytes+more, largest
	}
	if bytes > l.g.limits.Bytes {
		err = engine.Refuse(fmt.Sprintf("the engine reads at most %d bytes for one step that changes something", l.g.limits.Bytes))
	}
	l.putBack(l.group[n:])
	l.group = l.group[:n]
	return most, err
}

// readKeys reads the keys of the group that bodies want, but for values with more than most bytes.
func (l *lane) readKeys(most int) ([]engine.Record, error) {
	v := &l.view
	v.reset(l.g.engine.Now())
	for _, t := range l.group {
		for i := range t.keys {
			hash := t.hash
			if len(t.keys) > 1 {
				hash = l.g.hash(t.keys[i])
			}
			v.add(t.keys[i], hash, !t.op.Blind)
		}
	}
	v.sort()
	if !l.broad && !l.hold {
		l.assume()
	}
	l.epoch = 0
	if l.keys = v.wants(l.keys[:0], l.hold); len(l.keys) == 0 {
		return nil, nil
	}
	l.epoch = l.g.engine.Epoch()
	how := engine.Reading{NoWait: !l.late, Most: most}
	if l.hold {
		how.Hold = l.id
		l.g.stats.held.Add(1)
	}
	began := time.Now()
	recs, err := call(l.g, func(ctx context.Context) ([]engine.Record, error) {
		return l.g.engine.Read(ctx, l.keys, how)
	})
	l.g.stats.read.Observe(int64(time.Since(began)))
	return recs, err
}

// make makes a group of what the bodies have changed, and reports whether that is anything.
func (l *lane) make() (g *engine.Group, changes bool) {
	g = &engine.Group{ID: l.id, Whole: l.broad, NoWait: !l.late, Epoch: l.epoch}
	g.Changes, changes = l.view.conclude()
	if len(l.group) > 0 && !l.group[0].failed() {
		first := &l.group[0].op // alone, if it has any of these
		g.Clear, g.Position, g.Guard = first.Clear, first.Position, first.Guard
	}
	return g, changes || g.Clear != nil || g.Position != nil
}

// write writes a group, and finds out what has become of it, however long that takes. An Unknown is
// left only if the Gather is closed.
func (l *lane) write(g *engine.Group) (engine.Result, error) {
	began := time.Now()
	result, err := call(l.g, func(ctx context.Context) (engine.Result, error) { return l.g.engine.Write(ctx, g) })
	l.g.stats.write.Observe(int64(time.Since(began)))
	l.g.stats.operations.Observe(int64(len(l.group)))
	size := 0
	for i := range g.Changes {
		size += g.Changes[i].Size()
	}
	l.g.stats.bytes.Observe(int64(size))
	if settles(err) {
		l.g.trial.ends(l)
	}
	if err == nil || engine.KindOf(err) != engine.Unknown {
		return result, err
	}
	l.g.stats.unknown.Add(1)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		result, err := call(l.g, func(ctx context.Context) (engine.Result, error) { return l.g.engine.Settle(ctx, g.ID) })
		switch {
		case err == nil:
			l.g.stats.settledMade.Add(1)
			if slices.ContainsFunc(l.group, func(t *task) bool { return !t.left() }) {
				l.g.trial.ends(l) // somebody is told
			}
			return result, nil
		case errors.Is(err, engine.ErrUndone):
			l.g.stats.settledUndone.Add(1)
			return result, err
		case errors.Is(err, engine.ErrForgotten):
			return result, err
		case !l.g.pause(pause):
			return result, ErrNoAnswer
		}
	}
}

// finish answers the tasks whose changes were made, and puts back those that have lost.
func (l *lane) finish(r *engine.Result) {
	l.fails, l.crowd = 0, len(l.group)+l.waiting()
	made := r.Made()
	if !l.broad {
		l.learn(r)
	}
	if !made && l.broad {
		l.halve()
	} else {
		l.limit = min(2*l.limit, l.g.opts.Group)
	}
	lost := l.group[:0]
	for _, t := range l.group {
		if !made && (l.loses(t, r) || l.broad) {
			lost = append(lost, t)
			continue
		}
		t.answer(l.outcome(t, r), nil)
	}
	l.putBack(lost)
}

// loses reports whether a change that a task has read or made has lost.
func (l *lane) loses(t *task, r *engine.Result) bool {
	for i := range t.keys {
		if n := l.slot(t, i).change; n >= 0 && !r.Won[n] {
			t.lost++
			l.g.stats.lost.Add(1)
			return true
		}
	}
	return false
}

// slot returns the slot of a task's key.
func (l *lane) slot(t *task, i int) *slot {
	hash := t.hash
	if len(t.keys) > 1 {
		hash = l.g.hash(t.keys[i])
	}
	return l.view.find(t.keys[i], hash)
}

// outcome returns what a task hears of a group that was made.
func (l *lane) outcome(t *task, r *engine.Result) (o Outcome) {
	if !t.changed {
		if t.op.Clear != nil || t.op.Position != nil {
			o.Stamp = r.Stamp
		}
		return o
	}
	o.Stamp = r.Stamp
	for i := range t.keys {
		switch s := l.slot(t, i); {
		case !s.dirty:
		case s.by != t:
			o.Revision = engine.Replaced
		case s.exists && o.Revision == 0:
			o.Revision = r.Revision
		}
	}
	return o
}

// putBack puts tasks to the front, in their order.
func (l *lane) putBack(tasks []*task) {
	for _, t := range tasks {
		t.again()
	}
	l.front = slices.Insert(l.front, 0, tasks...)
}

// halve makes the next groups smaller.
func (l *lane) halve() { l.limit = max(1, min(l.limit, len(l.group))/2) }

// failed decides what to do about a call that has failed, without an effect.
func (l *lane) failed(err error) {
	switch kind := engine.KindOf(err); {
	case errors.Is(err, engine.ErrForgotten): // to make it again could make it twice
		for _, t := range l.group {
			t.answer(Outcome{}, ErrNoAnswer)
		}
	case errors.Is(err, engine.ErrPassed), errors.Is(err, engine.ErrDisowned):
		// Another server may have our lane: the engine was taken back to before it gave the lane
		// out. What has become of the other's groups must not be taken for ours.
		l.id = engine.GroupID{}
		l.putBack(l.group)
		l.g.opts.Past()
	case kind == engine.Undone, kind == engine.Unknown:
		l.putBack(l.group)
		if db, locked := engine.IsLocked(err); locked && !l.late && l.stepAside(db) {
			return
		}
		l.g.stats.undone.Add(1)
		if l.fails++; l.fails > 1 || engine.IsAway(err) {
			l.g.pause(min(firstPause<<min(l.fails, 10), lastPause))
		}
	case len(l.group) > 1: // one of them is to blame
		l.halve()
		l.putBack(l.group)
	default:
		l.group[0].answer(Outcome{}, err)
	}
}
