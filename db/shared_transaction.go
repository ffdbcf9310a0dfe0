package db

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/ulog"
)

// errLocked: the engine's lock of a database was not to be had in time.
var errLocked error = &dberr.Error{Code: dberr.SystemError, Err: dberr.ErrEngine,
	Message: "another server has the database for a transaction: nothing was changed, try again later"}

// errTaken: another transaction of this server has not ended in time.
var errTaken error = &dberr.Error{Code: dberr.SystemError, Err: dberr.ErrEngine,
	Message: "another transaction has the database: nothing was changed, try again later"}

// errLost: nobody made a transaction without an answer, since the engine has forgotten its lane.
var errLost error = &engine.Error{Kind: engine.Refused,
	Err: errors.New("the transaction has not been made: the engine was taken back to the past and has forgotten this server")}

// lock locks the database in the engine: groups of all servers wait. stop ends the wait, and so
// does the moment until.
func (s *shared) lock(stop <-chan struct{}, until time.Time) (*lock, error) {
	id, err := s.lanes.take(s)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	var late, interrupted atomic.Bool
	limit := time.AfterFunc(time.Until(until), func() { late.Store(true); end() })
	waited := make(chan struct{})
	go func() {
		select {
		case <-stop:
			interrupted.Store(true)
			end()
		case <-waited:
		}
	}()
	tx, err := gather.Retry(ctx, s.groups, func() (engine.Tx, error) { return s.engine.Begin(ctx, s.db.index) })
	close(waited)
	if limit.Stop(); err == nil {
		return &lock{tx: tx, end: end, id: id}, nil
	}
	end()
	s.lanes.give(id)
	switch {
	case interrupted.Load():
		return nil, dberr.ErrInterrupted
	case errors.Is(err, engine.ErrCrowded):
		return nil, engineError(err)
	case late.Load():
		return nil, errLocked
	}
	return nil, engineError(err)
}

// take returns the ID of the next group of a lane that nobody else uses. The engine has so many
// lanes and no more, so a lane serves one transaction after the other.
func (n *lanes) take(s *shared) (engine.GroupID, error) {
	if id, ok := n.idle(); ok {
		return id, nil
	}
	lane, err := gather.Ask(context.Background(), s.groups, s.engine.Lane)
	return engine.GroupID{Lane: lane, Seq: 1}, engineError(err)
}

// idle takes a lane that was used before.
func (n *lanes) idle() (id engine.GroupID, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := len(n.free) - 1; last >= 0 {
		id, n.free, ok = n.free[last], n.free[:last], true
	}
	return id, ok
}

// give gives back a lane whose group id was not written.
func (n *lanes) give(id engine.GroupID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id.Seq <= engine.LastSeq {
		n.free = append(n.free, id)
	}
}

// forget gives up the lanes that nobody uses.
func (n *lanes) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.free = nil
}

// next gives back a lane whose group id was written, or was settled.
func (n *lanes) next(id engine.GroupID) { n.give(engine.GroupID{Lane: id.Lane, Seq: id.Seq + 1}) }

// unlock ends the lock of a transaction that changes nothing.
func (s *shared) unlock(l *lock) {
	l.tx.Abort()
	l.end()
	s.lanes.give(l.id)
}

// commit makes the updates of a transaction in one step and ends the lock. A clear comes first, and
// all others are ascending.
func (s *shared) commit(l *lock, ups []ulog.Update) error {
	g := &engine.Group{ID: l.id, Whole: true}
	if len(ups) > 0 && ups[0].Op == ulog.OpClear {
		g.Clear = &engine.Clear{DB: s.db.index, Log: ups[:1]}
		ups = ups[1:]
	}
	for i := range ups {
		c := engine.Change{Key: s.key(ups[i].Key), If: engine.Any, Remove: ups[i].Op == ulog.OpRemove, Log: ups[i : i+1]}
		if !c.Remove {
			c.XT, c.Value, _ = s.db.Split(ups[i].Value)
		}
		g.Changes = append(g.Changes, c)
	}
	if g.Empty() {
		s.unlock(l)
		return nil
	}
	defer l.end()
	_, err := gather.Once(s.groups, func(ctx context.Context) (engine.Result, error) { return l.tx.Commit(ctx, g) })
	if err == nil || engine.KindOf(err) != engine.Unknown {
		switch {
		case errors.Is(err, engine.ErrPassed): // another server has the lane too, and keeps it
		case errors.Is(err, engine.ErrDisowned): // so would be those that wait
			s.lanes.forget()
		default:
			s.lanes.next(g.ID)
		}
		return engineError(err)
	}
	_, err = gather.Ask(context.Background(), s.groups, func(ctx context.Context) (engine.Result, error) {
		r, err := s.engine.Settle(ctx, g.ID)
		switch { // an answer
		case errors.Is(err, engine.ErrDisowned):
			return r, errLost
		case errors.Is(err, engine.ErrUndone):
			return r, engine.Refuse("the transaction has not been made: the engine has ended it")
		}
		return r, err
	})
	switch {
	case errors.Is(err, errLost): // with the lane, and with those that wait
		s.lanes.forget()
	case engine.KindOf(err) == engine.Undone: // the question is open, and the lane with it
		return engineError(gather.ErrNoAnswer)
	default:
		s.lanes.next(g.ID)
	}
	return engineError(err)
}
