package enginetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
)

// Groups whose changes have all the same kind of condition, which engines may make in a step of
// their own, and mixed ones: whoever loses is in the middle, and only its own change is left out.
func testLosers(h *host) {
	w, other := h.writer("a"), h.writer("b")
	names := []string{"a", "b", "c", "d", "e"}
	for _, c := range []struct {
		name   string
		before func() // what another server does at last
		change func(name string) engine.Change
		won    []bool
		logged string
		there  string
	}{
		{
			"replacing what was read, of which one was changed and one removed",
			func() { other.write(set("b", "other's", engine.Any), remove("d", engine.Any)) },
			func(name string) engine.Change { return set(name, "new", w.read(name).Revision) },
			[]bool{true, false, true, false, true}, "a=new c=new e=new", "new other's new - new",
		},
		{
			"replacing what was read, of which all were removed",
			func() {
				for _, name := range names {
					other.write(remove(name, engine.Any))
				}
			},
			func(name string) engine.Change { return set(name, "new", w.read(name).Revision) },
			make([]bool, 5), "", "- - - - -",
		},
		{
			"replacing what was read, of which one was removed and made again",
			func() { other.write(remove("c", engine.Any)); other.write(set("c", "old", engine.Any)) },
			func(name string) engine.Change { return set(name, "new", w.read(name).Revision) },
			[]bool{true, true, false, true, true}, "a=new b=new d=new e=new", "new new old new new",
		},
		{
			"adding where some are",
			func() { other.write(remove("a", engine.Any), remove("c", engine.Any), remove("e", engine.Any)) },
			func(name string) engine.Change { return set(name, "new", engine.Absent) },
			[]bool{true, false, true, false, true}, "a=new c=new e=new", "new old new old new",
		},
		{
			"adding where all are", func() {},
			func(name string) engine.Change { return set(name, "new", engine.Absent) },
			make([]bool, 5), "", "old old old old old",
		},
		{
			"setting, adding, replacing, removing and looking at once",
			func() { other.write(set("c", "other's", engine.Any)) },
			func(name string) engine.Change {
				revision := w.read(name).Revision
				return map[string]engine.Change{
					"a": set("a", "new", engine.Any), "b": set("b", "new", engine.Absent), "c": set("c", "new", revision),
					"d": remove("d", revision), "e": keep("e", revision),
				}[name]
			},
			[]bool{true, false, false, true, true}, "a=new -d", "new old other's - old",
		},
	} {
		var before, changes []engine.Change
		for _, name := range names {
			before = append(before, set(name, "old", engine.Any))
		}
		w.write(before...)
		for _, name := range names {
			changes = append(changes, c.change(name))
		}
		c.before()
		_, upTo := w.logged(0)
		r := w.write(changes...)
		require.Equal(h, c.won, r.Won, c.name)
		texts, _ := w.logged(upTo)
		require.Equal(h, c.logged, strings.Join(texts, " "), c.name)
		require.Equal(h, c.logged != "", r.Stamp != 0, c.name)
		there, count := []string{}, int64(0)
		for _, name := range names {
			there = append(there, w.value(name))
			if w.read(name) != nil {
				count++
			}
		}
		require.Equal(h, c.there, strings.Join(there, " "), c.name)
		records, _, err := w.Count(w.ctx, 0)
		require.NoError(h, err)
		require.Equal(h, count, records, c.name)
		settled, err := w.Settle(w.ctx, w.id)
		require.NoError(h, err)
		require.Equal(h, r, settled, c.name)
	}
}

// Writers who meet on keys that come and go, with groups of one kind and mixed ones: no two of them
// wait for each other, of those who add a key one wins, and records are counted right.
func testComing(h *host) {
	const writers, each = 4, 40
	var work sync.WaitGroup
	for i := range writers {
		w, dice := h.writer(fmt.Sprint("server", i)), rand.New(rand.NewPCG(uint64(i), 1))
		work.Go(func() {
			for n := range each {
				w.write(w.oneKind(dice, n%5, i)...)
			}
		})
	}
	work.Wait()
	w := h.writer("last")
	page, err := w.Scan(w.ctx, engine.Scan{Edge: true, Limit: 100})
	require.NoError(h, err)
	records, _, err := w.Count(w.ctx, 0)
	require.NoError(h, err)
	require.EqualValues(h, len(page.Records), records)

	adds := make([]engine.Result, writers)
	for i := range writers {
		w := h.writer(fmt.Sprint("adder", i))
		work.Go(func() {
			var changes []engine.Change
			for n := range 20 {
				changes = append(changes, set(fmt.Sprintf("new%02d", n), w.value("x"), engine.Absent))
			}
			adds[i] = w.write(changes...)
		})
	}
	work.Wait()
	for n := range 20 {
		winners := 0
		for i := range writers {
			if adds[i].Won[n] {
				winners++
			}
		}
		require.Equal(h, 1, winners, n)
	}
	after, _, err := w.Count(w.ctx, 0)
	require.NoError(h, err)
	require.Equal(h, records+20, after)
}

// oneKind returns changes of some keys: of one kind, or with kind 4 of several.
func (w *writer) oneKind(dice *rand.Rand, kind, who int) (changes []engine.Change) {
	for n := range 8 {
		if dice.IntN(2) == 0 {
			continue
		}
		k, one, revision := fmt.Sprint("k", n), kind, uint64(1<<50)
		if r := w.read(k); r != nil {
			revision = r.Revision
		}
		if kind == 4 {
			one = dice.IntN(4)
		}
		switch value := fmt.Sprint(who); one {
		case 0:
			changes = append(changes, set(k, value, engine.Any))
		case 1:
			changes = append(changes, set(k, value, engine.Absent))
		case 2:
			changes = append(changes, set(k, value, revision))
		default:
			changes = append(changes, remove(k, revision))
		}
	}
	return changes
}
