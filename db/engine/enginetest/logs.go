package enginetest

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

func testLog(h *host) {
	a, b := h.writer("a"), h.writer("b")
	idA, err := a.Log().ID(h.Context())
	require.NoError(h, err)
	idB, err := b.Log().ID(h.Context())
	require.NoError(h, err)
	require.Equal(h, idA, idB)
	require.NotZero(h, idA)

	_, start := a.logged(0)
	c := set("a", "3", engine.Any)
	origin := ulog.Origin{Log: 77, Stamp: 5}
	c.Log = []ulog.Update{ // two operations met
		{SID: 2, Op: ulog.OpSet, Key: c.Key.Key, Value: stored("1", engine.Forever), Origin: origin},
		{SID: 1, Op: ulog.OpSet, Key: c.Key.Key, Value: stored("3", engine.Forever)},
	}
	first := a.write(c, set("b", "1", engine.Any), set("c", "lost", 1<<50))
	second := b.write(set("a", "4", engine.Any))
	require.Less(h, first.Stamp, second.Stamp)
	groups, upTo, err := b.Log().Read(h.Context(), start, 1<<20)
	require.NoError(h, err)
	require.GreaterOrEqual(h, upTo, second.Stamp)
	require.Len(h, groups, 2)
	require.Equal(h, a.id, groups[0].ID)
	require.Equal(h, first.Stamp, groups[0].Last())
	require.Len(h, groups[0].Updates, 3)
	require.Equal(h, origin, groups[0].Updates[0].Origin)
	require.EqualValues(h, 2, groups[0].Updates[0].SID)
	texts, _ := a.logged(start)
	require.Equal(h, []string{"a=1", "a=3", "b=1", "a=4"}, texts)

	groups, upTo, err = b.Log().Read(h.Context(), start, 1)
	require.NoError(h, err)
	require.Len(h, groups, 1, "at least one group, and not more bytes than asked for")
	require.Equal(h, first.Stamp, upTo)
	for upTo <= second.Stamp { // the clock moves on
		<-time.After(moment)
		_, upTo = b.logged(second.Stamp)
	}
}

func testTrim(h *host) {
	w := h.writer("a")
	first := w.write(set("a", "1", engine.Any))
	second := w.write(set("a", "2", engine.Any))
	require.NoError(h, w.Log().Trim(h.Context(), first.Stamp))
	oldest, err := w.Log().Oldest(h.Context())
	require.NoError(h, err)
	require.GreaterOrEqual(h, oldest, first.Stamp)
	require.Less(h, oldest, second.Stamp)
	_, _, err = w.Log().Read(h.Context(), first.Stamp-1, 1<<20)
	require.ErrorIs(h, err, engine.ErrTrimmed)
	texts, _ := w.logged(oldest)
	require.Equal(h, []string{"a=2"}, texts)
	require.Equal(h, "2", w.value("a"))
}

// add adds 1 to numbers, each by itself, as often as it takes.
func (w *writer) add(names ...string) {
	for len(names) > 0 {
		found, err := w.Read(w.ctx, keys(names...), engine.Reading{})
		require.NoError(w.t, err)
		var changes []engine.Change
		for _, n := range names {
			c := set(n, "1", engine.Absent)
			for _, r := range found {
				if string(r.Key.Key) == n {
					old, _ := strconv.Atoi(string(r.Value))
					c = set(n, strconv.Itoa(old+1), r.Revision)
				}
			}
			changes = append(changes, c)
		}
		var lost []string
		for i, won := range w.write(changes...).Won {
			if !won {
				lost = append(lost, names[i])
			}
		}
		names = lost
	}
}

// Whoever meets on a key, nothing is lost and nothing comes twice.
func testWriters(h *host) {
	const each = 60
	var work sync.WaitGroup
	for _, names := range [][]string{{"a", "b", "c"}, {"b", "c"}, {"a", "c", "d"}} {
		w := h.writer(fmt.Sprint(names))
		work.Go(func() {
			for range each {
				w.add(names...)
			}
		})
	}
	work.Wait()
	w := h.writer("last")
	require.Equal(h, fmt.Sprint(2*each, 2*each, 3*each, each), fmt.Sprintf("%s %s %s %s", w.value("a"), w.value("b"), w.value("c"), w.value("d")))
}

// Who reads the log while others write meets every update once, those of a key in their order, and
// has the engine's records in the end.
func testFollow(h *host) {
	const each = 60
	var work sync.WaitGroup
	for n := range 3 {
		w := h.writer(fmt.Sprint(n))
		work.Go(func() {
			for i := range each {
				w.add("n")
				own := fmt.Sprint("own", n)
				if i%3 == 2 {
					w.write(remove(own, engine.Any))
				} else {
					w.write(set(own, strconv.Itoa(i), engine.Any))
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		work.Wait()
		close(ended)
	}()
	w, copied, seen := h.writer("reader"), map[string][]byte{}, 0
	for at, last := engine.Stamp(0), false; !last; {
		select {
		case <-ended:
			last = true // once more: all is there now
		case <-time.After(time.Millisecond):
		}
		groups, upTo, err := w.Log().Read(h.Context(), at, 1<<20)
		require.NoError(h, err)
		for _, g := range groups {
			require.Greater(h, g.Stamp, at)
			at = g.Last()
			for _, u := range g.Updates {
				seen++
				if u.Op == ulog.OpRemove {
					delete(copied, string(u.Key))
					continue
				}
				if string(u.Key) == "n" {
					require.Equal(h, 1+number(copied["n"]), number(u.Value), "the updates of a key are in order")
				}
				copied[string(u.Key)] = bytes.Clone(u.Value)
			}
		}
		require.GreaterOrEqual(h, upTo, at)
		at = upTo
	}
	require.Equal(h, 3*each*2, seen)
	page, err := w.Scan(h.Context(), engine.Scan{Edge: true, Limit: 100})
	require.NoError(h, err)
	have := map[string][]byte{}
	for _, r := range page.Records {
		have[string(r.Key.Key)] = stored(string(r.Value), r.XT)
	}
	require.Equal(h, have, copied)
}

func number(value []byte) int {
	if len(value) < record.XTSize {
		return 0
	}
	n, _ := strconv.Atoi(string(value[record.XTSize:]))
	return n
}
