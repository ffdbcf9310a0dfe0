package gather

import (
	"context"
	"slices"
	"time"

	"gotycoon/db/engine"
)

// late returns the lane that waits for a database, which it makes if asked to.
func (g *Gather) late(db uint16, make bool) *lane {
	if l, there := g.lates.Load(db); there || !make {
		l, _ := l.(*lane)
		return l
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
func (l *lane) stepAside(db uint16) (any bool) {
	late := l.g.late(db, true)
	l.front = slices.DeleteFunc(l.front, func(t *task) bool {
		yes := t.uses(db)
		if yes {
			late.join(t, true)
		}
		any = any || yes
		return yes
	})
	return any
}

// follow gives a lane that waits for a database the tasks that came later. They must not be made
// before those that wait there, and would find the database locked.
func (l *lane) follow() {
	if l.g.waiting.Load() > 0 && !l.late {
		l.front = slices.DeleteFunc(l.front, func(t *task) bool {
			return t.op.Clear != nil && l.g.joins(t, t.op.Clear.DB) ||
				slices.ContainsFunc(t.keys, func(k engine.Key) bool { return l.g.joins(t, k.DB) })
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.front = slices.Insert(l.front, 0, l.back...)
	clear(l.back)
	l.back = l.back[:0]
}

// joins gives a task to the lane that waits for a database, if there are tasks that wait.
func (g *Gather) joins(t *task, db uint16) bool {
	late := g.late(db, false)
	return late != nil && late.join(t, false)
}

// uses reports whether a task changes a database, or reads it before it changes another one.
func (t *task) uses(db uint16) bool {
	return t.op.Clear != nil && t.op.Clear.DB == db || slices.ContainsFunc(t.keys, func(k engine.Key) bool { return k.DB == db })
}

// join has a lane that waits for a database carry out a task: the first one, or if it has others.
func (l *lane) join(t *task, first bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy && !first {
		return false
	}
	if !l.busy {
		l.busy = true
		l.g.waiting.Add(1)
	}
	t.setLocked(true)
	l.queue = append(l.queue, t)
	l.nudge()
	return true
}

// rest ends the wait for a database: its tasks go back to their own lanes, in front of those that
// come now.
func (l *lane) rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy {
		return
	}
	for _, t := range append(l.front, l.queue...) {
		t.setLocked(false)
		t.home.mu.Lock()
		t.home.back = append(t.home.back, t)
		t.home.mu.Unlock()
		t.home.nudge()
	}
	l.front, l.queue, l.busy = nil, nil, false
	l.g.waiting.Add(-1)
}

// attend makes sure, while a lane waits for a database, that everybody knows the engine is there. The
// caller calls the function that is returned when the wait is over.
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
