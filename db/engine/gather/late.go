package gather

import (
	"context"
	"slices"
	"time"

	"gotycoon/db/engine"
)

// late returns the lane that waits for a database.
func (g *Gather) late(db uint16) *lane {
	if l, there := g.lates.Load(db); there {
		return l.(*lane)
	}
	l := newLane(g, true)
	l.late = true
	if known, there := g.lates.LoadOrStore(db, l); there {
		return known.(*lane)
	}
	g.work.Go(l.run)
	return l
}

// stepAside gives all tasks that use a database to the lane that waits for it, and reports whether
// there was one.
func (l *lane) stepAside(db uint16) (any bool) { return l.hand(l.g.late(db), db, true) }

// follow gives lanes that wait for a database the tasks that came later. They must not be made
// before those that wait there, and would find the database locked.
func (l *lane) follow() {
	if l.g.waiting.Load() > 0 && !l.late {
		l.g.lates.Range(func(db, late any) bool {
			l.hand(late.(*lane), db.(uint16), false)
			return true
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeBack()
}

// hand gives a late lane all tasks that use its database: with first, or if it has tasks. In one
// step: a task that comes back meanwhile must not get behind a later one of its key.
func (l *lane) hand(late *lane, db uint16, first bool) (any bool) {
	late.mu.Lock()
	defer late.mu.Unlock()
	if !late.busy && !first {
		return false
	}
	l.mu.Lock()
	l.takeBack()
	l.mu.Unlock()
	l.front = slices.DeleteFunc(l.front, func(t *task) bool {
		if !t.uses(db) {
			return false
		}
		t.setLocked(true)
		any = true
		late.enqueue(t)
		return true
	})
	if any && !late.busy {
		late.busy = true
		l.g.waiting.Add(1)
	}
	late.nudge()
	return any
}

// takeBack takes the tasks back that are not made by a late lane any more. They are older than
// those that are in front. The caller has l.mu.
func (l *lane) takeBack() {
	l.front = slices.Insert(l.front, 0, l.back...)
	clear(l.back)
	l.back = l.back[:0]
}

// uses reports whether a task changes a database, or reads it before it changes another one.
func (t *task) uses(db uint16) bool {
	return t.op.Clear != nil && t.op.Clear.DB == db || slices.ContainsFunc(t.keys, func(k engine.Key) bool { return k.DB == db })
}

// rest ends the wait for a database: its tasks go back to their own lanes, in front of those that
// come now.
func (l *lane) rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy {
		return
	}
	back := map[*lane][]*task{}
	for _, t := range append(l.front, l.queue...) {
		t.setLocked(false)
		back[t.home] = append(back[t.home], t)
	}
	for home, tasks := range back { // all at once: of two parts the second would go in front
		home.mu.Lock()
		home.back = append(home.back, tasks...)
		home.mu.Unlock()
		home.nudge()
	}
	l.front, l.queue, l.busy = nil, nil, false
	l.g.waiting.Add(-1)
}

// attend makes sure, while a lane waits for a database, that everybody knows the engine is there.
// The caller calls the function that is returned when the wait is over.
func (l *lane) attend() (over func()) {
	ctx, cancel := context.WithCancel(l.g.ctx)
	l.g.work.Go(func() {
		ticker := time.NewTicker(min(time.Second, l.g.opts.Timeout/4))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				l.g.answers()
			}
		}
	})
	return cancel
}

// setLocked notes whether a task waits for a database that somebody has alone.
func (t *task) setLocked(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.locked = yes
}
