package mem

import (
	"context"
	"slices"
	"time"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

// log is the updates of all servers. Store.mu guards it.
type log struct {
	groups  []engine.Logged       // in the order of their stamps
	last    engine.Stamp          // the last one drawn
	making  map[engine.Stamp]bool // first stamps of groups that are not committed yet
	trimmed engine.Stamp
}

// serverLog is the log as one server sees it.
type serverLog struct{ *Server }

// Log returns the log, nil where none is kept.
func (v *Server) Log() engine.Log {
	if v.store.opts.NoLog {
		return nil
	}
	return serverLog{v}
}

// draw returns the stamp of a group's first update, 0 where the group logs nothing. The caller
// holds s.mu and has locked the group's keys.
func (s *Store) draw(g *engine.Group, updates int) engine.Stamp {
	if s.opts.NoLog || updates == 0 && g.Position == nil {
		return 0
	}
	after := engine.Stamp(0)
	if g.Position != nil {
		after = g.Position.After
	}
	at := max(s.log.last+1, after+1, ulog.StampAt(time.Now()))
	s.log.last = at + engine.Stamp(max(1, updates)) - 1
	s.log.making[at] = true
	return at
}

// add enters a group that is committed, and returns its last stamp.
func (l *log) add(g engine.Logged) engine.Stamp {
	delete(l.making, g.Stamp)
	i, _ := slices.BinarySearchFunc(l.groups, g.Stamp, func(one engine.Logged, at engine.Stamp) int {
		return int(int64(one.Stamp) - int64(at))
	})
	l.groups = slices.Insert(l.groups, i, g)
	return g.Last()
}

// horizon returns the stamp up to which every group is there.
func (l *log) horizon() engine.Stamp {
	upTo := l.last
	for at := range l.making {
		upTo = min(upTo, at-1)
	}
	return upTo
}

// ID returns the identity of the log.
func (l serverLog) ID(ctx context.Context) ([16]byte, error) {
	return ask(ctx, l.Server, Call{Name: ReadLog}, func() ([16]byte, error) { return l.store.id, nil })
}

// Read returns groups up to the horizon. It draws a stamp when none has been drawn for a second.
func (l serverLog) Read(ctx context.Context, after engine.Stamp, maxBytes int) ([]engine.Logged, engine.Stamp, error) {
	type answer struct {
		groups []engine.Logged
		upTo   engine.Stamp
	}
	a, err := ask(ctx, l.Server, Call{Name: ReadLog}, func() (a answer, err error) {
		s := l.store
		s.mu.Lock()
		defer s.mu.Unlock()
		if after < s.log.trimmed {
			return a, engine.ErrTrimmed
		}
		if idle := ulog.StampAt(time.Now().Add(-time.Second)); s.log.last < idle {
			s.log.last = ulog.StampAt(time.Now())
		}
		a.upTo = max(after, s.log.horizon())
		size := 0
		for _, g := range s.log.groups {
			if g.Stamp <= after || g.Stamp > a.upTo {
				continue
			}
			for i := range g.Updates {
				size += len(g.Updates[i].Key) + len(g.Updates[i].Value)
			}
			if len(a.groups) > 0 && size > maxBytes {
				a.upTo = a.groups[len(a.groups)-1].Last()
				return a, nil
			}
			g.Updates = cloneUpdates(g.Updates)
			a.groups = append(a.groups, g)
		}
		return a, nil
	})
	return a.groups, a.upTo, err
}

// Oldest returns up to where the log was trimmed.
func (l serverLog) Oldest(ctx context.Context) (engine.Stamp, error) {
	return ask(ctx, l.Server, Call{Name: ReadLog}, func() (engine.Stamp, error) {
		l.store.mu.Lock()
		defer l.store.mu.Unlock()
		return l.store.log.trimmed, nil
	})
}

// Trim removes groups.
func (l serverLog) Trim(ctx context.Context, upTo engine.Stamp) error {
	_, err := ask(ctx, l.Server, Call{Name: ReadLog}, func() (struct{}, error) {
		g := &l.store.log
		l.store.mu.Lock()
		defer l.store.mu.Unlock()
		g.trimmed = max(g.trimmed, min(upTo, g.horizon()))
		g.groups = slices.DeleteFunc(g.groups, func(one engine.Logged) bool { return one.Last() <= g.trimmed })
		return struct{}{}, nil
	})
	return err
}
