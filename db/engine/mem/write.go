package mem

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

// errNew is for a group whose writer knows things from before the connection was made.
var errNew error = &engine.Error{Kind: engine.Undone, Err: errors.New("the connection is a new one")}

// Write makes a group, as far as the faults let it.
func (v *Server) Write(ctx context.Context, g *engine.Group) (engine.Result, error) {
	return v.write(ctx, g, ownerOf(g.ID), func() {})
}

// write is Write for a group whose keys are locked by o. It calls over when nothing of the group is
// left to be done, which may be long after it has returned.
func (v *Server) write(ctx context.Context, g *engine.Group, o owner, over func()) (engine.Result, error) {
	if !g.Empty() {
		if err := g.Check(v.store.opts.Limits); err != nil {
			over()
			return engine.Result{}, err
		}
	}
	f := v.fault(Call{Name: Write, Lane: g.ID.Lane, Seq: g.ID.Seq})
	if g.Epoch != 0 && g.Epoch < v.Epoch() {
		over()
		return engine.Result{}, errNew
	}
	if err := pause(ctx, f.Delay); err != nil {
		over()
		return engine.Result{}, &engine.Error{Kind: engine.Unknown, Away: true, Err: err}
	}
	switch {
	case f.Kind == engine.Unknown && !f.Made, f.Kind != 0 && f.Kind != engine.Unknown:
		over()
		return engine.Result{}, f.err()
	case f.Kind == engine.Unknown && f.Late == 0 && f.Commit == 0:
		_, _ = v.make(ctx, g, o, f)
		over()
		return engine.Result{}, f.err()
	case f.Kind == engine.Unknown:
		v.start(v.ctx, clone(g), o, f, over)
		return engine.Result{}, f.err()
	case f.Commit > 0: // the answer may come too late for the server, and the commit all the same
		select {
		case e := <-v.start(ctx, clone(g), o, f, over):
			return e.answer(ctx, f)
		case <-ctx.Done():
			return engine.Result{}, &engine.Error{Kind: engine.Unknown, Away: true, Err: ctx.Err()}
		}
	}
	result, err := v.make(ctx, g, o, f)
	over()
	return made{result, err}.answer(ctx, f)
}

// made is what has become of a group.
type made struct {
	result engine.Result
	err    error
}

// answer returns what the server hears of it.
func (m made) answer(ctx context.Context, f Fault) (engine.Result, error) {
	if f.Answer > 0 && pause(ctx, f.Answer) != nil {
		return engine.Result{}, &engine.Error{Kind: engine.Unknown, Away: true, Err: ctx.Err()}
	}
	return m.result, m.err
}

// start makes a group in a goroutine.
func (v *Server) start(ctx context.Context, g *engine.Group, o owner, f Fault, over func()) <-chan made {
	end := make(chan made, 1)
	v.work.Go(func() {
		defer over()
		if pause(v.ctx, f.Late) == nil {
			result, err := v.make(ctx, g, o, f)
			end <- made{result, err}
		}
	})
	return end
}

// clone copies a group, which belongs to the caller of Write, for after that call.
func clone(g *engine.Group) *engine.Group {
	c := *g
	c.Changes = slices.Clone(g.Changes)
	for i := range c.Changes {
		one := &c.Changes[i]
		one.Key.Key, one.Value = bytes.Clone(one.Key.Key), bytes.Clone(one.Value)
		one.Log = cloneUpdates(one.Log)
	}
	return &c
}

func cloneUpdates(ups []ulog.Update) []ulog.Update {
	ups = slices.Clone(ups)
	for i := range ups {
		ups[i].Key, ups[i].Value = bytes.Clone(ups[i].Key), bytes.Clone(ups[i].Value)
	}
	return ups
}

// make makes a group in one step: locks, conditions, stamp, commit.
func (v *Server) make(ctx context.Context, g *engine.Group, o owner, f Fault) (engine.Result, error) {
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writers[g.ID.Lane] != v {
		return engine.Result{}, engine.ErrDisowned
	}
	l := s.laneOf(g.ID.Lane)
	if g.ID.Seq <= l.seq || l.making != 0 { // it must not touch what a later group holds
		return engine.Result{}, engine.ErrPassed
	}
	if g.Empty() || l.hold != nil && l.hold.by != ownerOf(g.ID) {
		s.endHold(l)
	}
	if g.Empty() {
		l.seq, l.made = g.ID.Seq, false
		return engine.Result{}, nil
	}
	keys := make([]engine.Key, len(g.Changes))
	for i := range g.Changes {
		keys[i] = g.Changes[i].Key
	}
	if g.NoWait {
		db, locked := s.locks.alone(o, keys)
		if g.Clear != nil && !s.locks.unused(o, g.Clear.DB) {
			db, locked = g.Clear.DB, true
		}
		if locked {
			s.endHold(l)
			return engine.Result{}, engine.Locked(db)
		}
	}
	ready := func() bool {
		return s.locks.free(o, keys) && (g.Clear == nil || s.locks.unused(o, g.Clear.DB))
	}
	if err := s.await(ctx, ready); err != nil {
		return engine.Result{}, err
	}
	if g.ID.Seq <= l.seq || l.making != 0 { // by now
		return engine.Result{}, engine.ErrPassed
	}
	won, refusal := s.judge(g)
	if refusal != nil || g.Whole && slices.Contains(won, false) {
		s.endHold(l)
		return engine.Result{Won: won}, refusal
	}
	cleared, locked := g.Clear != nil, false
	if cleared {
		if _, locked = s.locks.dbs[g.Clear.DB]; !locked {
			s.locks.dbs[g.Clear.DB] = o
		}
	}
	s.locks.take(o, keys)
	s.guarded(g, 1)
	l.making = g.ID.Seq
	ups := s.updates(g, won)
	at := s.draw(g, len(ups))
	if f.Commit > 0 {
		s.mu.Unlock()
		_ = pause(context.Background(), f.Commit) // nobody can take the commit back
		s.mu.Lock()
	}
	result := s.commit(g, won, ups, at)
	l.making, l.seq, l.made, l.result = 0, g.ID.Seq, true, result
	s.guarded(g, -1)
	if cleared && !locked {
		delete(s.locks.dbs, g.Clear.DB)
	}
	s.locks.give(o, keys)
	s.endHold(l)
	s.free()
	return result, nil
}

// judge returns which conditions hold. The caller holds s.mu and has the keys to itself.
func (s *Store) judge(g *engine.Group) (won []bool, refusal error) {
	if g.Guard != nil && !s.holds(g.Guard) {
		return nil, engine.ErrFenced
	}
	won = make([]bool, len(g.Changes))
	for i := range g.Changes {
		c := &g.Changes[i]
		r, found := s.table(c.DB).records[string(c.Key.Key)]
		switch c.If {
		case engine.Any:
			won[i] = true
		case engine.Absent:
			won[i] = !found
		default:
			won[i] = found && r.Revision == c.If
		}
	}
	return won, nil
}

// updates returns what the log gets of a group.
func (s *Store) updates(g *engine.Group, won []bool) (ups []ulog.Update) {
	if s.opts.NoLog {
		return nil
	}
	if g.Clear != nil {
		ups = append(ups, cloneUpdates(g.Clear.Log)...)
	}
	for i := range g.Changes {
		c := &g.Changes[i]
		_, found := s.table(c.DB).records[string(c.Key.Key)]
		gone := g.Clear != nil && g.Clear.DB == c.DB
		if won[i] && !c.Keep && (!c.Remove || found && !gone) {
			ups = append(ups, cloneUpdates(c.Log)...)
		}
	}
	return ups
}

// commit makes a group visible. at is the stamp of its first update.
func (s *Store) commit(g *engine.Group, won []bool, ups []ulog.Update, at engine.Stamp) engine.Result {
	result := engine.Result{Won: won, Revision: g.ID.Revision()}
	if g.Clear != nil {
		s.tables[g.Clear.DB] = nil
	}
	for i := range g.Changes {
		c := &g.Changes[i]
		switch {
		case !won[i] || c.Keep:
		case c.Remove:
			s.table(c.DB).remove(string(c.Key.Key))
		default:
			key := engine.Key{DB: c.DB, Key: bytes.Clone(c.Key.Key)}
			s.table(c.DB).put(engine.Record{Key: key, Value: bytes.Clone(c.Value), XT: c.XT, Revision: result.Revision})
		}
	}
	if at != 0 {
		result.Stamp = s.log.add(engine.Logged{ID: g.ID, Stamp: at, Updates: ups, Position: position(g)})
	}
	return result
}

// position returns what the log keeps of a group's position.
func position(g *engine.Group) *ulog.Position {
	if g.Position == nil {
		return nil
	}
	return &ulog.Position{DBID: g.Position.DBID, State: bytes.Clone(g.Position.State)}
}

// Settle tells what has become of a group.
func (v *Server) Settle(ctx context.Context, id engine.GroupID) (engine.Result, error) {
	return ask(ctx, v, Call{Name: Settle, Lane: id.Lane, Seq: id.Seq}, func() (engine.Result, error) {
		s := v.store
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.writers[id.Lane] != v {
			return engine.Result{}, engine.ErrUndoneDisowned
		}
		l := s.laneOf(id.Lane)
		if err := s.await(ctx, func() bool { return l.making != id.Seq }); err != nil {
			return engine.Result{}, err
		}
		switch {
		case id.Seq < l.seq:
			return engine.Result{}, engine.Refuse("a later group of the lane was written or settled")
		case id.Seq > l.seq:
			l.seq, l.made = id.Seq, false
		}
		if !l.made {
			s.endHold(l)
			return engine.Result{}, engine.ErrUndone
		}
		return l.result, nil
	})
}
