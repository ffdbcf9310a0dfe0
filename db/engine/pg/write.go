package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

// Write makes a group: one statement, and one round trip.
func (e *Engine) Write(ctx context.Context, g *engine.Group) (engine.Result, error) {
	held := e.takeHold(g.ID)
	if g.Empty() {
		held.release()
		return engine.Result{}, nil
	}
	s, err := e.statement(ctx, g)
	if err != nil {
		held.release()
		return engine.Result{}, err
	}
	e.written(g.ID)
	if held != nil {
		return held.write(ctx, s)
	}
	pool := e.lanes
	if !g.NoWait {
		pool = e.waiting
	}
	c, err := pool.Acquire(ctx)
	if err != nil {
		return engine.Result{}, mean(err, false)
	}
	if g.Epoch != 0 && !since(c, g.Epoch) {
		c.Release()
		return engine.Result{}, errNew
	}
	committing(c, true)
	err = s.scan(c.QueryRow(ctx, s.text, s.args...))
	return s.answer(e.done(c, pool, err, true))
}

// errNew is for a group whose writer knows things from before the connection was made.
var errNew error = &engine.Error{Kind: engine.Undone, Err: errors.New("the connection is a new one")}

// done gives a connection back, and says what err means. A connection with an error is closed: it
// may have a lock that lasts as long as its session.
func (e *Engine) done(c *pgxpool.Conn, pool *pgxpool.Pool, err error, changes bool) error {
	if err == nil && alone(c) {
		err = errAlone
	}
	if err == nil {
		committing(c, false)
		c.Release()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 0) // without a word of farewell
	_ = c.Conn().Close(ctx)
	cancel()
	c.Release()
	if isCode(err, readOnly) {
		pool.Reset() // it is a standby by now; where is the primary?
	}
	return mean(err, changes)
}

// with calls f with a connection. What f does may be repeated.
func (e *Engine) with(ctx context.Context, pool *pgxpool.Pool, f func(c *pgxpool.Conn) error) error {
	c, err := e.acquire(ctx, pool)
	if err != nil {
		return err
	}
	return e.done(c, pool, f(c), false)
}

// statement is the statement that makes a group, and its answer.
type statement struct {
	group *engine.Group
	text  string
	args  []any

	state int
	at    *int64 // stamp of the first update
	ups   int    // updates that were logged
	won   []int16
	kind  kind
}

// kind is which function makes a group: general can do everything, the others less in less time.
type kind byte

const (
	general kind = iota
	sets         // without conditions, of one database
	mixed        // changes of one database, each for itself
)

// States of a group, see the function write.
const (
	stateFenced = 1
	stateLost   = 2
	stateLocked = 3
)

// statement returns the one for a group. Databases that it needs get their tables.
func (e *Engine) statement(ctx context.Context, g *engine.Group) (*statement, error) {
	if err := g.Check(e.Limits()); err != nil {
		return nil, err
	}
	if g.ID.Lane > MaxLanes || g.ID.Seq > engine.LastSeq {
		return nil, engine.Refuse(fmt.Sprintf("the engine counts %d lanes and %d groups of a lane", MaxLanes, engine.LastSeq))
	}
	if g.Clear != nil {
		if err := e.table(ctx, g.Clear.DB); err != nil {
			return nil, err
		}
	}
	single, blind := g.Clear == nil && g.Position == nil && g.Guard == nil && len(g.Changes) > 0, true
	for i := range g.Changes {
		c := &g.Changes[i]
		if i == 0 || g.Changes[i-1].DB != c.DB {
			if err := e.table(ctx, c.DB); err != nil {
				return nil, err
			}
			single = single && i == 0
		}
		blind = blind && !c.Remove && c.If == engine.Any
	}
	s := &statement{group: g}
	switch {
	case single && blind:
		e.put(s)
	case single && !g.Whole:
		e.mix(s)
	default:
		e.general(s)
	}
	return s, nil
}

// put is the statement for sets without conditions.
func (e *Engine) put(s *statement) {
	g := s.group
	n := len(g.Changes)
	keys, values, xts := make([][]byte, n), make([][]byte, n), make([]int64, n)
	for i := range g.Changes {
		c := &g.Changes[i]
		keys[i], values[i], xts[i] = notNull(c.Key.Key), notNull(c.Value), c.XT
		if e.meta.Log {
			s.ups += len(c.Log)
		}
	}
	s.kind = sets
	s.text = fmt.Sprintf("SELECT put_%d($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", g.Changes[0].DB)
	s.args = []any{int64(g.ID.Lane), e.writer[:], int64(g.ID.Seq), int64(g.ID.Revision()), keys, values, xts, s.ups, e.body(g), g.NoWait}
}

// mix is the statement for changes of one database, each with its own condition.
func (e *Engine) mix(s *statement) {
	g := s.group
	c := e.columns(g)
	ups := 0
	for _, n := range c.counts {
		ups += int(n)
	}
	s.kind = mixed
	s.text = fmt.Sprintf("SELECT * FROM mix_%d($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)", g.Changes[0].DB)
	s.args = []any{
		int64(g.ID.Lane), e.writer[:], int64(g.ID.Seq), int64(g.ID.Revision()), c.keys, c.values, c.xts, c.ifs, c.ops, c.counts, ups, e.body(g), g.NoWait,
	}
}

// columns are the changes of a group as the functions mix and write have them.
type columns struct {
	keys, values [][]byte
	xts, ifs     []int64
	ops          []int16
	counts       []int32 // of updates
}

func (e *Engine) columns(g *engine.Group) columns {
	n := len(g.Changes)
	to := columns{make([][]byte, n), make([][]byte, n), make([]int64, n), make([]int64, n), make([]int16, n), make([]int32, n)}
	for i := range g.Changes {
		c := &g.Changes[i]
		to.keys[i], to.values[i], to.xts[i], to.ifs[i] = notNull(c.Key.Key), notNull(c.Value), c.XT, int64(c.If)
		switch {
		case c.Remove:
			to.ops[i] = 1
		case c.Keep:
			to.ops[i] = 2
		}
		if e.meta.Log {
			to.counts[i] = int32(len(c.Log))
		}
	}
	return to
}

// notNull returns bytes as a parameter: pgx takes nil for NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// body returns the updates of a group, nil where no log is kept.
func (e *Engine) body(g *engine.Group) []byte {
	if !e.meta.Log {
		return nil
	}
	size := 64
	for i := range g.Changes {
		for j := range g.Changes[i].Log {
			u := &g.Changes[i].Log[j]
			size += len(u.Key) + len(u.Value) + 32
		}
	}
	return appendBody(make([]byte, 0, size), g)
}

// general is the statement for everything else.
func (e *Engine) general(s *statement) {
	g := s.group
	changes := e.columns(g)
	dbs, ends, locks, conditions := []int32{}, []int32{}, []int32{}, false
	for i := range g.Changes {
		c := &g.Changes[i]
		conditions = conditions || c.If != engine.Any
		if i == 0 || g.Changes[i-1].DB != c.DB {
			dbs, ends = append(dbs, int32(c.DB)), append(ends, 0)
		}
		ends[len(ends)-1] = int32(i + 1)
	}
	locks = append(locks, dbs...)
	var cleared *int32
	before := 0
	if g.Clear != nil {
		db := int32(g.Clear.DB)
		cleared = &db
		if i, there := slices.BinarySearch(locks, db); !there {
			locks = slices.Insert(locks, i, db)
		}
		if e.meta.Log {
			before = len(g.Clear.Log)
		}
	}
	var guard *string
	var term, after int64
	var mark []byte
	if g.Guard != nil {
		guard, term, mark = &g.Guard.Name, int64(g.Guard.Number), g.Guard.Mark[:]
	}
	var dbid *int32
	var place []byte
	if g.Position != nil && e.meta.Log {
		db := int32(g.Position.DBID)
		dbid, after = &db, int64(g.Position.After)
		place = notNull(g.Position.State)
	}
	s.text = "SELECT * FROM write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)"
	s.args = []any{
		int64(g.ID.Lane), e.writer[:], int64(g.ID.Seq), int64(g.ID.Revision()), guard, term, mark, locks, cleared, before,
		dbs, ends, changes.keys, changes.values, changes.xts, changes.ifs, changes.ops, changes.counts,
		g.Whole && conditions, after, dbid, place, e.body(g), g.NoWait,
	}
}

// scan reads the row that the statement returns.
func (s *statement) scan(row pgx.Row) error {
	var err error
	switch s.kind {
	case sets:
		err = row.Scan(&s.at)
	case mixed:
		var ups *int
		if err = row.Scan(&s.at, &ups, &s.won); ups != nil {
			s.ups = *ups
		}
	default:
		return row.Scan(&s.state, &s.at, &s.ups, &s.won)
	}
	if err == nil && s.at != nil && *s.at < 0 {
		s.state, s.ups = stateLocked, int(s.group.Changes[0].DB)
	}
	return err
}

// answer returns what has become of the group. err is why the statement has failed.
func (s *statement) answer(err error) (engine.Result, error) {
	switch {
	case err != nil:
		return engine.Result{}, err
	case s.state == stateFenced:
		return engine.Result{}, engine.ErrFenced
	case s.state == stateLocked:
		return engine.Result{}, engine.Locked(uint16(s.ups))
	case s.state == stateLost:
		return engine.Result{Won: winners(s.won, len(s.won))}, nil
	}
	return result(s.group.ID, len(s.group.Changes), s.ups, s.won, s.at), nil
}

func result(id engine.GroupID, n, ups int, won []int16, at *int64) engine.Result {
	r := engine.Result{Won: winners(won, n), Revision: id.Revision()}
	if at != nil {
		r.Stamp = engine.Stamp(*at) + engine.Stamp(max(1, ups)-1)
	}
	return r
}

// winners returns the column won as a Result has it; nil stands for n changes that were made.
func winners(won []int16, n int) []bool {
	all := make([]bool, n)
	for i := range all {
		all[i] = won == nil || won[i] != 0
	}
	return all
}

// noteLasts is for how long the note of a group is there in any case: two rotations, without what a
// slow clock and a slow commit take of it.
const noteLasts = 2*leastRotate - 20*time.Second

// written notes that a group is about to be written. The time is PostgreSQL's: a machine that is
// suspended does not know for how long.
func (e *Engine) written(id engine.GroupID) {
	e.holdsMu.Lock()
	defer e.holdsMu.Unlock()
	e.writes[id.Lane] = e.Clock()
}

// remembered returns until when a lane's last group has a note if it was made, nil if no group of
// the lane was written here.
func (e *Engine) remembered(id engine.GroupID) *time.Time {
	e.holdsMu.Lock()
	defer e.holdsMu.Unlock()
	if at, there := e.writes[id.Lane]; there {
		return new(at.Add(noteLasts))
	}
	return nil
}

// notOurs is what the function settle returns for a lane that is not this server's.
const notOurs = -2

// Settle tells what has become of a group. If its connection is still at work, it waits.
func (e *Engine) Settle(ctx context.Context, id engine.GroupID) (r engine.Result, err error) {
	e.takeHold(id).release()
	var n, ups int
	var won []int16
	var at *int64
	var late bool
	err = e.with(ctx, e.lanes, func(c *pgxpool.Conn) error {
		committing(c, true)
		text := "SELECT p_n, p_ups, p_won, p_stamp, coalesce(clock_timestamp() > $4, false) FROM settle($1, $2, $3)"
		return c.QueryRow(ctx, text, int64(id.Lane), e.writer[:], int64(id.Seq), e.remembered(id)).Scan(&n, &ups, &won, &at, &late)
	})
	switch {
	case err != nil:
		return r, err
	case n == notOurs: // what is noted under the ID is another server's
		return r, engine.ErrUndoneDisowned
	case n < 0 && late:
		return r, engine.ErrForgotten
	case n < 0:
		return r, engine.ErrUndone
	}
	return result(id, n, ups, won, at), nil
}
