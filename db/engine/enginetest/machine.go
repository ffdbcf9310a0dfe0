package enginetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

// machine is two servers that do everything in turns, and what must be there. Its database is a new
// one for each run, so a place need not be made anew.
type machine struct {
	t        *rapid.T
	db       uint16
	lanes    []*writer
	records  map[string]engine.Record
	claims   []*claimant
	claimed  []claimed
	log      []string
	from     engine.Stamp
	terms    map[string]uint64
	revision map[uint64]bool
}

// claimed is a record, the claim, and what the former has besides.
type claimed struct {
	engine.Claimed
	by *claimant
}

func testMachine(h *host) {
	a, b := h.server("a"), h.server("b")
	db := uint16(0)
	rapid.Check(h, func(t *rapid.T) { // not h.T, of which rapid asks what a bubble does not tell
		db++
		m := &machine{t: t, db: db, records: map[string]engine.Record{}, terms: map[string]uint64{}, revision: map[uint64]bool{}}
		m.lanes = []*writer{newWriter(t, h.Context(), a), newWriter(t, h.Context(), b), newWriter(t, h.Context(), a)}
		_, m.from = m.lanes[0].logged(0)
		if a.Claims() != nil {
			defer m.claimants(h, a, b)()
		}
		t.Repeat(map[string]func(*rapid.T){
			"":              m.check,
			"write":         m.write,
			"clear":         m.clear,
			"settle":        m.settle,
			"scan":          m.scan,
			"sweep":         m.sweep,
			"take":          m.take,
			"end":           m.endClaim,
			"settle a take": m.settleTake,
			"give up":       func(t *rapid.T) { m.giveUp(h, t) },
			"lease":         func(t *rapid.T) { m.lease(h, t) },
		})
	})
}

func (m *machine) lane(t *rapid.T) *writer { return rapid.SampledFrom(m.lanes).Draw(t, "lane") }

func (m *machine) key(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "a", "ab", "b", "b\xff", "c"}).Draw(t, "key")
}

// change returns a change of one key, whose condition may hold or not.
func (m *machine) change(t *rapid.T, key string) engine.Change {
	value := rapid.SampledFrom([]string{"", "x", strings.Repeat("long", 100)}).Draw(t, "value")
	condition := rapid.SampledFrom([]uint64{engine.Any, m.records[key].Revision, engine.Absent, 1 << 50}).Draw(t, "condition")
	c := setUntil(key, value, rapid.SampledFrom([]int64{engine.Forever, 5, 1 << 39}).Draw(t, "xt"), condition)
	if condition != engine.Absent && rapid.Bool().Draw(t, "remove") {
		c = remove(key, condition)
	} else if condition != engine.Any && rapid.Bool().Draw(t, "keep") {
		c = keep(key, condition)
	}
	c.DB = m.db
	for i := range c.Log {
		c.Log[i].DBID = m.db
	}
	return c
}

// holds reports whether a condition holds.
func (m *machine) holds(c *engine.Change) bool {
	r, there := m.records[string(c.Key.Key)]
	switch c.If {
	case engine.Any:
		return true
	case engine.Absent:
		return !there
	}
	return r.Revision == c.If
}

func (m *machine) write(t *rapid.T) {
	g := &engine.Group{Whole: rapid.Bool().Draw(t, "whole")}
	names := rapid.SliceOfNDistinct(rapid.Custom(m.key), 1, 4, rapid.ID[string]).Draw(t, "keys")
	slices.Sort(names)
	want := []bool{}
	for _, n := range names {
		c := m.change(t, n)
		g.Changes = append(g.Changes, c)
		want = append(want, m.holds(&c))
	}
	r := m.lane(t).group(g)
	if g.Whole && slices.Contains(want, false) {
		require.False(t, r.Made())
		return
	}
	require.Equal(t, want, r.Won)
	m.make(g, &r)
}

// make makes the changes that have won.
func (m *machine) make(g *engine.Group, r *engine.Result) {
	stored := false
	for i := range g.Changes {
		c := &g.Changes[i]
		key := string(c.Key.Key)
		_, there := m.records[key]
		if !r.Won[i] || c.Keep || c.Remove && !there {
			continue
		}
		m.log = append(m.log, text(&c.Log[0]))
		delete(m.records, key)
		if !c.Remove {
			stored = true
			m.records[key] = engine.Record{Key: c.Key, Value: c.Value, XT: c.XT, Revision: r.Revision}
		}
	}
	if stored {
		require.False(m.t, m.revision[r.Revision])
		m.revision[r.Revision] = true
	}
}

func (m *machine) clear(t *rapid.T) {
	g := &engine.Group{Clear: &engine.Clear{DB: m.db, Log: []ulog.Update{{DBID: m.db, Op: ulog.OpClear}}}, Whole: true}
	if rapid.Bool().Draw(t, "and set") {
		c := set(m.key(t), "behind the clear", engine.Any)
		c.DB, c.Log[0].DBID = m.db, m.db
		g.Changes = append(g.Changes, c)
	}
	r := m.lane(t).group(g)
	clear(m.records) // what is claimed stays
	m.log = append(m.log, "clear")
	m.make(g, &r)
}

// settle asks for a group that never comes.
func (m *machine) settle(t *rapid.T) {
	w := m.lane(t)
	_, err := w.Settle(w.ctx, w.next())
	require.ErrorIs(t, err, engine.ErrUndone)
}

func (m *machine) scan(t *rapid.T) {
	s := engine.Scan{
		DB: m.db, Prefix: []byte(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "prefix")), Key: []byte(m.key(t)), Limit: rapid.IntRange(1, 4).Draw(t, "limit"),
		Floor: []byte(m.key(t)), Edge: rapid.Bool().Draw(t, "edge"), Inclusive: rapid.Bool().Draw(t, "inclusive"), Backward: rapid.Bool().Draw(t, "backward"),
	}
	w := m.lane(t)
	page, err := w.Scan(w.ctx, s)
	require.NoError(t, err)
	want := expected(slices.Sorted(maps.Keys(m.records)), s)
	require.Equal(t, len(want) > s.Limit, page.More)
	require.Equal(t, want[:min(len(want), s.Limit)], keysOf(page.Records))
	for _, r := range page.Records {
		require.Equal(t, m.records[string(r.Key.Key)], r)
	}
}

func (m *machine) sweep(t *rapid.T) {
	w, limit := m.lane(t), rapid.IntRange(1, 3).Draw(t, "limit")
	n, err := w.Sweep(w.ctx, m.db, 100, limit)
	require.NoError(t, err)
	expired := 0
	for key, r := range m.records {
		if r.XT >= 100 {
			continue
		}
		expired++
		recs, err := w.Read(w.ctx, []engine.Key{{DB: m.db, Key: []byte(key)}}, engine.Reading{})
		require.NoError(t, err)
		if len(recs) == 0 {
			delete(m.records, key)
			n--
		}
	}
	require.Zero(t, n)
	require.LessOrEqual(t, expired-len(m.expired()), limit)
	require.True(t, len(m.expired()) == 0 || expired-len(m.expired()) == limit)
}

func (m *machine) expired() (names []string) {
	for key, r := range m.records {
		if r.XT < 100 {
			names = append(names, key)
		}
	}
	return names
}

// lease takes a lease and gives it back.
func (m *machine) lease(h *host, t *rapid.T) {
	w, name := m.lane(t), fmt.Sprint(m.db, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"))
	l := h.lease(w, name)
	require.Greater(t, l.Number, m.terms[name])
	m.terms[name] = l.Number
	require.True(t, w.group(&engine.Group{Guard: &l.Term, Position: &ulog.Position{DBID: m.db}}).Made())
	l.giveUp()
	<-l.lost
	_, err := w.Write(w.ctx, &engine.Group{ID: w.next(), Guard: &l.Term, Position: &ulog.Position{DBID: m.db}})
	require.ErrorIs(t, err, engine.ErrFenced)
}

// check compares all that can be seen, after each step.
func (m *machine) check(t *rapid.T) {
	w := m.lanes[1]
	n, _, err := w.Count(w.ctx, m.db)
	require.NoError(t, err)
	require.EqualValues(t, len(m.records), n)
	page, err := w.Scan(w.ctx, engine.Scan{DB: m.db, Edge: true, Limit: 100})
	require.NoError(t, err)
	require.Len(t, page.Records, len(m.records))
	for _, r := range page.Records {
		require.Equal(t, m.records[string(r.Key.Key)], r)
	}
	texts, upTo := w.logged(m.from)
	require.Equal(t, m.log, texts)
	m.log, m.from = nil, upTo
}
