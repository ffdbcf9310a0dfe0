package enginetest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

// What each condition asks for, with the record that is there.
func testConditions(h *host) {
	w := h.writer("a")
	for _, c := range []struct {
		name   string
		there  string // value of the record; empty: none
		xt     int64
		change engine.Change
		this   bool // the condition is the record's revision
		won    bool
		value  string
		logged string
	}{
		{"set over nothing", "", 0, set("k", "new", engine.Any), false, true, "new", "k=new"},
		{"set over a record", "old", engine.Forever, set("k", "new", engine.Any), false, true, "new", "k=new"},
		{"add where nothing is", "", 0, set("k", "new", engine.Absent), false, true, "new", "k=new"},
		{"add where a record is", "old", engine.Forever, set("k", "new", engine.Absent), false, false, "old", ""},
		{"add where an expired record is", "old", 1, set("k", "new", engine.Absent), false, false, "old", ""},
		{"replace this record", "old", engine.Forever, set("k", "new", 0), true, true, "new", "k=new"},
		{"replace this expired record", "old", 1, set("k", "new", 0), true, true, "new", "k=new"},
		{"replace another record", "old", engine.Forever, set("k", "new", 1<<50), false, false, "old", ""},
		{"replace nothing", "", 0, set("k", "new", 1<<50), false, false, "-", ""},
		{"remove this record", "old", engine.Forever, remove("k", 0), true, true, "-", "-k"},
		{"remove another record", "old", engine.Forever, remove("k", 1<<50), false, false, "old", ""},
		{"remove any record", "old", engine.Forever, remove("k", engine.Any), false, true, "-", "-k"},
		{"keep this record", "old", engine.Forever, keep("k", 0), true, true, "old", ""},
		{"keep another record", "old", engine.Forever, keep("k", 1<<50), false, false, "old", ""},
		{"keep nothing", "", 0, keep("k", engine.Absent), false, true, "-", ""},
		{"keep nothing where a record is", "old", engine.Forever, keep("k", engine.Absent), false, false, "old", ""},
		{"remove any record where nothing is", "", 0, remove("k", engine.Any), false, true, "-", ""},
	} {
		w.write(remove("k", engine.Any))
		if c.there != "" {
			w.write(setUntil("k", c.there, c.xt, engine.Any))
		}
		_, before := w.logged(0)
		if c.this {
			c.change.If = w.read("k").Revision
		}
		r := w.write(c.change)
		require.Equal(h, c.won, r.Won[0], c.name)
		require.Equal(h, c.value, w.value("k"), c.name)
		if c.won && !c.change.Remove && !c.change.Keep {
			require.Equal(h, r.Revision, w.read("k").Revision, c.name)
			require.Equal(h, engine.Forever, w.read("k").XT, c.name)
		}
		texts, upTo := w.logged(before)
		require.Equal(h, c.logged, strings.Join(texts, " "), c.name)
		require.Equal(h, c.logged != "", r.Stamp != 0, c.name)
		require.LessOrEqual(h, r.Stamp, upTo, c.name)
	}
}

// A record that was removed and made again is another one, though it has the same value.
func testRevisions(h *host) {
	a, b := h.writer("a"), h.writer("b")
	seen := map[uint64]bool{engine.Any: true, engine.Absent: true, engine.Replaced: true}
	for i, w := range []*writer{a, b, a, a, b} {
		if i == 2 {
			require.Equal(h, []bool{true}, b.write(remove("k", b.read("k").Revision)).Won)
		}
		r := w.write(set("k", "same", engine.Any))
		require.False(h, seen[r.Revision], "a revision comes again")
		require.Less(h, r.Revision, engine.Replaced)
		seen[r.Revision] = true
		require.Equal(h, r.Revision, a.read("k").Revision)
	}
}

// One condition that fails decides for itself, in a whole group for all.
func testWhole(h *host) {
	w := h.writer("a")
	w.write(set("b", "there", engine.Any))
	for _, whole := range []bool{true, false} {
		r := w.group(&engine.Group{Whole: whole, Changes: []engine.Change{
			set("a", "1", engine.Any), set("b", "2", engine.Absent), set("c", "3", engine.Absent),
		}})
		require.False(h, r.Made())
		require.False(h, r.Won[1])
		require.Equal(h, "there", w.value("b"))
		if whole {
			require.Equal(h, "-", w.value("a"))
			require.Equal(h, "-", w.value("c"))
			require.Zero(h, r.Stamp)
		} else {
			require.Equal(h, []bool{true, false, true}, r.Won)
			require.Equal(h, "1", w.value("a"))
			require.Equal(h, "3", w.value("c"))
		}
	}
	r := w.group(&engine.Group{Whole: true, Changes: []engine.Change{set("a", "of who looks", engine.Any), keep("b", engine.Absent)}})
	require.False(h, r.Made())
	require.Equal(h, "1", w.value("a"))
	r = w.group(&engine.Group{Whole: true, Changes: []engine.Change{
		set("a", "4", w.read("a").Revision), remove("b", w.read("b").Revision), set("d", "5", engine.Absent),
	}})
	require.True(h, r.Made())
	require.Equal(h, "4 - 3 5", strings.Join([]string{w.value("a"), w.value("b"), w.value("c"), w.value("d")}, " "))
}

// What an engine never makes, it refuses, with nothing done.
func testRefused(h *host) {
	w := h.writer("a")
	limits := w.Limits()
	long := strings.Repeat("k", limits.Key+1)
	for name, g := range map[string]engine.Group{
		"two changes of a key":  {Changes: []engine.Change{set("a", "1", engine.Any), set("a", "2", engine.Any)}},
		"keys not ascending":    {Changes: []engine.Change{set("b", "1", engine.Any), set("a", "2", engine.Any)}},
		"a key that is long":    {Changes: []engine.Change{set(long, "1", engine.Any)}},
		"a look at anything":    {Changes: []engine.Change{keep("a", engine.Any)}},
		"removal of the absent": {Changes: []engine.Change{remove("a", engine.Absent)}},
		"a clear and a condition": {
			Clear: &engine.Clear{}, Changes: []engine.Change{set("a", "1", engine.Absent)},
		},
	} {
		g.ID = w.next()
		_, err := w.Write(w.ctx, &g)
		require.Equal(h, engine.Refused, engine.KindOf(err), "%s: %v", name, err)
	}
	_, err := w.Write(w.ctx, &engine.Group{Changes: []engine.Change{set("a", "1", engine.Any)}})
	require.Equal(h, engine.Refused, engine.KindOf(err), "a group without an ID")
	require.Equal(h, "-", w.value("a"))
	w.write(set("a", "1", engine.Any))
	_, err = w.Write(w.ctx, &engine.Group{ID: w.id, Changes: []engine.Change{set("a", "2", engine.Any)}})
	require.Equal(h, engine.Refused, engine.KindOf(err), "the ID of another group")
	require.Equal(h, "1", w.value("a"))
}

// A clear and the records behind it are one step, of one database.
func testClear(h *host) {
	w := h.writer("a")
	other := set("x", "other", engine.Any)
	other.DB = 1
	w.write(set("a", "1", engine.Any), set("b", "2", engine.Any), other)
	_, before := w.logged(0)
	r := w.group(&engine.Group{
		Clear:   &engine.Clear{Log: []ulog.Update{{SID: 1, Op: ulog.OpClear}}},
		Changes: []engine.Change{set("b", "3", engine.Any), set("c", "4", engine.Any)}, Whole: true,
	})
	require.True(h, r.Made())
	require.Equal(h, "- 3 4", strings.Join([]string{w.value("a"), w.value("b"), w.value("c")}, " "))
	texts, upTo := w.logged(before)
	require.Equal(h, []string{"clear", "b=3", "c=4"}, texts)
	require.LessOrEqual(h, r.Stamp, upTo)
	recs, err := w.Read(w.ctx, []engine.Key{{DB: 1, Key: []byte("x")}}, engine.Reading{})
	require.NoError(h, err)
	require.Len(h, recs, 1)
	n, _, err := w.Count(w.ctx, 0)
	require.NoError(h, err)
	require.EqualValues(h, 2, n)
}

// Settle tells what has become of a group, and decides it where nothing has.
func testSettle(h *host) {
	w := h.writer("a")
	for range 2 {
		r := w.write(set("k", "1", engine.Any), set("l", "1", 1<<50))
		for range 2 {
			settled, err := w.Settle(w.ctx, w.id)
			require.NoError(h, err)
			require.Equal(h, r, settled)
		}
	}
	id := w.next()
	for range 2 {
		_, err := w.Settle(w.ctx, id)
		require.ErrorIs(h, err, engine.ErrUndone)
	}
	_, err := w.Write(w.ctx, &engine.Group{ID: id, Changes: []engine.Change{set("k", "late", engine.Any)}})
	require.Equal(h, engine.Refused, engine.KindOf(err), "a group arrives after it was settled: %v", err)
	require.Equal(h, "1", w.value("k"))
	w.write(set("k", "2", engine.Any))
	require.Equal(h, "2", w.value("k"))
}
