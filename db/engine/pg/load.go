package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"gotycoon/db/engine"
)

// Loading brings many records in at once, while servers may be at work. Groups of thousands of sets
// are copied into the table of the database, which takes PostgreSQL half of the time of a group of
// Write. PostgreSQL refuses a copy with a key that has a record; such a group is written instead.
// Every group is noted and logged as any other, so what becomes of one without an answer is found
// out, and followers get all records.
const (
	loaders     = 3                // groups that are under way at a time
	loadRecords = 8192             // of a group
	loadBytes   = 4 << 20          // about so many
	loadPatient = 30 * time.Second // for a PostgreSQL that does not answer, such as one that fails over
	mostWrites  = 64               // groups that are written before another copy is tried
)

// errTaken is for a group that cannot be copied, since a key of it has a record.
var errTaken error = &engine.Error{Kind: engine.Undone, Err: errors.New("there is a record of the key")}

// Load stores the records that next returns until io.EOF, each of which is a set without a
// condition of a key that comes once. next is called by one goroutine at a time. Load returns how
// many records are certainly stored. After an error some of the others may be, and all of them may
// be loaded again.
func (e *Engine) Load(ctx context.Context, next func() (engine.Change, error)) (stored int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	groups := make(chan []engine.Change)
	var mu sync.Mutex // of stored
	var work sync.WaitGroup
	for range loaders {
		work.Go(func() {
			l := &loader{e: e}
			for changes := range groups {
				if err := l.load(ctx, changes); err != nil {
					cancel(err) // the others end as soon
					continue
				}
				mu.Lock()
				stored += len(changes)
				mu.Unlock()
			}
		})
	}
	read := divide(ctx, next, groups)
	close(groups)
	work.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return stored, cause
	}
	return stored, read
}

// divide makes groups of records.
func divide(ctx context.Context, next func() (engine.Change, error), groups chan<- []engine.Change) error {
	for {
		var changes []engine.Change
		var err error
		for size := 0; err == nil && len(changes) < loadRecords && size < loadBytes; {
			var c engine.Change
			if c, err = next(); err == nil {
				changes = append(changes, c)
				size += c.Size()
			}
		}
		if len(changes) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			slices.SortFunc(changes, func(a, b engine.Change) int { return engine.Compare(a.Key, b.Key) })
			select {
			case groups <- changes:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// loader makes one group after the other.
type loader struct {
	e      *Engine
	id     engine.GroupID
	writes int // groups that are written before another copy is tried
	taken  int // how many it will be after the next copy that PostgreSQL refuses
}

// load makes a group, and tries again what may pass.
func (l *loader) load(ctx context.Context, changes []engine.Change) error {
	open := false // what has become of the group is not known
	until := time.Now().Add(loadPatient)
	for pauses := time.Millisecond; ; pauses = min(2*pauses, 100*time.Millisecond) {
		err := l.name(ctx, open)
		if err == nil {
			err = l.make(ctx, changes, open)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errTaken):
			l.taken = min(max(1, 2*l.taken), mostWrites)
			l.writes = l.taken
			continue
		case errors.Is(err, engine.ErrDisowned):
			open = false
			l.id = engine.GroupID{}
		case errors.Is(err, engine.ErrUndone):
			open = false
			l.id.Seq++ // the ID is used up
		case engine.KindOf(err) == engine.Unknown:
			open = true
		case engine.KindOf(err) != engine.Undone:
			return err
		}
		if ctx.Err() != nil || time.Now().After(until) {
			return err
		}
		pause(ctx, pauses)
	}
}

// name gives the next group an ID, unless it has one.
func (l *loader) name(ctx context.Context, open bool) error {
	if open || l.id.Lane > 0 && l.id.Seq > 0 {
		return nil
	}
	n, err := l.e.Lane(ctx)
	if err == nil {
		l.id = engine.GroupID{Lane: n, Seq: 1}
	}
	return err
}

// make makes a group, or asks what has become of it.
func (l *loader) make(ctx context.Context, changes []engine.Change, open bool) (err error) {
	g := &engine.Group{ID: l.id, Changes: changes}
	switch {
	case open:
		_, err = l.e.Settle(ctx, g.ID)
	case l.writes > 0:
		_, err = l.e.Write(ctx, g)
	default:
		if _, err = l.e.copy(ctx, g); err == nil {
			l.taken = 0
		}
	}
	if err == nil {
		l.writes = max(0, l.writes-1)
		l.id.Seq++
	}
	return err
}

// copy makes a group of sets of keys that have no records.
func (e *Engine) copy(ctx context.Context, g *engine.Group) (engine.Result, error) {
	if err := g.Check(e.Limits()); err != nil {
		return engine.Result{}, err
	}
	db := g.Changes[0].DB
	if err := e.table(ctx, db); err != nil {
		return engine.Result{}, err
	}
	c, err := e.lanes.Acquire(ctx)
	if err != nil {
		return engine.Result{}, mean(err, false)
	}
	begin := fmt.Sprintf("BEGIN; SELECT pg_advisory_xact_lock_shared(%d, %d)", classDatabase, db)
	if _, err = c.Exec(ctx, begin, pgx.QueryExecModeSimpleProtocol); err == nil {
		rev := int64(g.ID.Revision())
		_, err = c.CopyFrom(ctx, pgx.Identifier{fmt.Sprintf("r%d", db)}, []string{"k", "v", "xt", "ver"},
			pgx.CopyFromSlice(len(g.Changes), func(i int) ([]any, error) {
				change := &g.Changes[i]
				return []any{notNull(change.Key.Key), notNull(change.Value), change.XT, rev}, nil
			}))
	}
	if err != nil {
		if isCode(err, uniqueKey) {
			e.rollback(c, e.lanes)
			return engine.Result{}, errTaken
		}
		return engine.Result{}, e.abandon(c, e.lanes, err)
	}
	s := &statement{group: g, kind: sets}
	if e.meta.Log {
		for i := range g.Changes {
			s.ups += len(g.Changes[i].Log)
		}
	}
	s.text = "SELECT note($1, $2, $3, $4, $5, NULL, 0, NULL, NULL, $6)"
	s.args = []any{int64(g.ID.Lane), e.writer[:], int64(g.ID.Seq), len(g.Changes), s.ups, e.body(g)}
	e.written(g.ID)
	count := query{"INSERT INTO deltas VALUES ($1, $2)", []any{int(db), len(g.Changes)}}
	return e.conclude(ctx, c, e.lanes, []query{count}, s)
}
