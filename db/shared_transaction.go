package db

import (
	"context"
	"errors"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/ulog"
)

// lock locks the database in the engine: groups of all servers wait. stop ends the wait.
func (s *shared) lock(stop <-chan struct{}) (*lock, error) {
	ctx, end := context.WithCancel(context.Background())
	waited := make(chan struct{})
	defer close(waited)
	interrupted := make(chan struct{})
	go func() {
		select {
		case <-stop:
			close(interrupted)
			end()
		case <-waited:
		}
	}()
	tx, err := gather.Retry(ctx, s.groups, func() (engine.Tx, error) { return s.engine.Begin(ctx, s.db.index) })
	if err == nil {
		return &lock{tx, end}, nil
	}
	end()
	select {
	case <-interrupted:
		return nil, dberr.ErrInterrupted
	default:
		return nil, engineError(err)
	}
}

// abort ends the lock.
func (l *lock) abort() {
	l.tx.Abort()
	l.end()
}

// commit makes the updates of a transaction in one step and ends the lock. A clear comes first, and
// all others are ascending.
func (s *shared) commit(l *lock, ups []ulog.Update) error {
	defer l.end()
	g := &engine.Group{Whole: true}
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
		l.tx.Abort()
		return nil
	}
	lane, err := gather.Ask(context.Background(), s.groups, s.engine.Lane)
	if err != nil {
		l.tx.Abort()
		return engineError(err)
	}
	g.ID = engine.GroupID{Lane: lane, Seq: 1}
	_, err = gather.Once(s.groups, func(ctx context.Context) (engine.Result, error) { return l.tx.Commit(ctx, g) })
	if err == nil || engine.KindOf(err) != engine.Unknown {
		return engineError(err)
	}
	_, err = gather.Ask(context.Background(), s.groups, func(ctx context.Context) (engine.Result, error) {
		r, err := s.engine.Settle(ctx, g.ID)
		if errors.Is(err, engine.ErrUndone) { // an answer
			return r, engine.Refuse("the transaction has not been made: the engine has ended it")
		}
		return r, err
	})
	if engine.KindOf(err) == engine.Undone { // the question is open
		return engineError(gather.ErrNoAnswer)
	}
	return engineError(err)
}
