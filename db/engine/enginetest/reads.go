package enginetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

func testReads(h *host) {
	w := h.writer("a")
	var changes []engine.Change
	for b := range 256 { // whatever the engine's locale thinks of the order of letters
		changes = append(changes, set(string([]byte{byte(b)}), fmt.Sprint(b), engine.Any))
	}
	empty, expired, other := set("", "", engine.Any), setUntil("zz", "old", 1, engine.Any), set("a", "of 1", engine.Any)
	other.DB = 1
	changes = append(changes, empty, expired, other)
	slices.SortFunc(changes, func(a, b engine.Change) int { return engine.Compare(a.Key, b.Key) })
	w.write(changes...)

	recs, err := w.Read(w.ctx, nil, engine.Reading{})
	require.NoError(h, err)
	require.Empty(h, recs)
	recs, err = w.Read(w.ctx, append(keys("", "\x00", "a", "ab", "zz", "\xff"), engine.Key{DB: 1, Key: []byte("a")}, engine.Key{DB: 7, Key: []byte("a")}), engine.Reading{})
	require.NoError(h, err)
	var seen []string
	for _, r := range recs {
		require.NotNil(h, r.Value)
		require.GreaterOrEqual(h, r.Revision, engine.FirstRevision)
		seen = append(seen, fmt.Sprintf("%d %q %s", r.DB, r.Key.Key, r.Value))
	}
	require.Equal(h, []string{`0 "" `, `0 "\x00" 0`, `0 "a" 97`, `0 "zz" old`, `0 "\xff" 255`, `1 "a" of 1`}, seen)
	require.Equal(h, int64(1), recs[3].XT)

	page, err := w.Scan(w.ctx, engine.Scan{Edge: true, Limit: 1000})
	require.NoError(h, err)
	require.Len(h, page.Records, 258)
	require.True(h, slices.IsSortedFunc(page.Records, func(a, b engine.Record) int { return bytes.Compare(a.Key.Key, b.Key.Key) }))
}

// A key or a value of no bytes is the same with a slice and without one.
func testNothing(h *host) {
	w := h.writer("a")
	nothing := engine.Change{If: engine.Any, XT: engine.Forever, Log: []ulog.Update{{SID: 1, Op: ulog.OpSet, Value: stored("", engine.Forever)}}}
	for _, c := range []engine.Change{set("", "", engine.Any), nothing, {If: engine.Any, Remove: true}, set("", "", engine.Absent), nothing} {
		w.write(c)
		for _, key := range [][]byte{nil, {}} {
			for _, id := range []engine.GroupID{{}, w.next()} {
				recs, err := w.Read(w.ctx, []engine.Key{{Key: key}}, engine.Reading{Hold: id})
				require.NoError(h, err)
				require.Equal(h, c.Remove, len(recs) == 0)
			}
		}
	}
}

// Nobody changes a record by changing the bytes that an engine was given, or has returned.
func testSlices(h *host) {
	w := h.writer("a")
	c := set("key", "value", engine.Any)
	w.write(c)
	copy(c.Key.Key, "XXX")
	copy(c.Value, "XXXXX")
	copy(c.Log[0].Value, "XXXXXXXXXX")
	for range 2 {
		r := w.read("key")
		require.Equal(h, "value", string(r.Value))
		copy(r.Value, "XXXXX")
		copy(r.Key.Key, "XXX")
		groups, _, err := w.Log().Read(w.ctx, 0, 1<<20)
		require.NoError(h, err)
		require.Equal(h, stored("value", engine.Forever), groups[0].Updates[0].Value)
		copy(groups[0].Updates[0].Value, "XXXXXXXXXX")
	}
}

// Every kind of scan over a few records, compared with the obvious way to find the same.
func testScans(h *host) {
	w := h.writer("a")
	names := []string{"", "a", "ab", "abc", "b", "b\x00", "ba", "c", "\xff\xff"}
	var changes []engine.Change
	for _, n := range names {
		changes = append(changes, set(n, "value of "+n, engine.Any))
	}
	other := set("bb", "of another database", engine.Any)
	other.DB = 3
	w.write(append(changes, other)...)
	for _, prefix := range []string{"", "a", "b", "x", "\xff"} {
		for _, from := range []string{"", "a", "aa", "b", "bz", "\xff\xff\xff"} {
			for bits := range 16 {
				for _, limit := range []int{1, 2, 100} {
					s := engine.Scan{
						Prefix: []byte(prefix), Key: []byte(from), Limit: limit,
						Edge: bits&1 > 0, Inclusive: bits&2 > 0, Backward: bits&4 > 0, Bare: bits&8 > 0,
					}
					page, err := w.Scan(w.ctx, s)
					require.NoError(h, err)
					want := expected(names, s)
					more := len(want) > limit
					require.Equal(h, want[:min(limit, len(want))], keysOf(page.Records), "%+v", s)
					require.Equal(h, more, page.More, "%+v", s)
					for _, r := range page.Records {
						require.Equal(h, s.Bare, r.Value == nil)
						require.NotZero(h, r.Revision)
					}
				}
			}
		}
	}
	page, err := w.Scan(w.ctx, engine.Scan{Edge: true, Limit: 100, Bytes: 15})
	require.NoError(h, err)
	require.True(h, page.More)
	require.Equal(h, []string{"", "a"}, keysOf(page.Records), "a page ends when it has enough bytes")
}

// expected returns the keys that a scan without limits visits.
func expected(names []string, s engine.Scan) []string {
	found := []string{}
	for _, n := range names {
		order := strings.Compare(n, string(s.Key))
		if s.Backward {
			order = -order
		}
		if strings.HasPrefix(n, string(s.Prefix)) && n >= string(s.Floor) && (s.Edge || order > 0 || order == 0 && s.Inclusive) {
			found = append(found, n)
		}
	}
	if s.Backward {
		slices.Reverse(found)
	}
	return found
}

func keysOf(recs []engine.Record) []string {
	found := []string{}
	for _, r := range recs {
		found = append(found, string(r.Key.Key))
	}
	return found
}

func testSweep(h *host) {
	w := h.writer("a")
	now := w.Now()
	w.write(setUntil("a", "1", now-10, engine.Any), setUntil("b", "1", now-9, engine.Any), setUntil("c", "1", now-8, engine.Any),
		setUntil("d", "1", now+1000, engine.Any), set("e", "1", engine.Any))
	_, before := w.logged(0)
	for _, want := range []int{2, 1, 0} {
		n, err := w.Sweep(w.ctx, 0, now, 2)
		require.NoError(h, err)
		require.Equal(h, want, n)
	}
	texts, _ := w.logged(before)
	require.Empty(h, texts, "what has expired is not logged")
	n, size, err := w.Count(w.ctx, 0)
	require.NoError(h, err)
	require.EqualValues(h, 2, n)
	require.Positive(h, size)
	require.True(h, engine.Expired(now-1, now))
	require.False(h, engine.Expired(now, now), "a record lives in the second that its expiration time names")
}

func testSnapshot(h *host) {
	w := h.writer("a")
	r := w.write(set("a", "1", engine.Any), set("b", "2", engine.Any))
	snap, err := w.Snapshot(w.ctx, 0)
	require.NoError(h, err)
	require.GreaterOrEqual(h, snap.Stamp(), r.Stamp)
	w.write(set("a", "later", engine.Any), remove("b", engine.Any), set("c", "later", engine.Any))
	var all []string
	from := engine.Scan{Edge: true, Limit: 1}
	for {
		page, err := snap.Scan(w.ctx, from)
		require.NoError(h, err)
		for _, rec := range page.Records {
			all = append(all, string(rec.Key.Key)+"="+string(rec.Value))
			from = engine.Scan{Key: rec.Key.Key, Limit: 1}
		}
		if !page.More {
			break
		}
	}
	require.Equal(h, []string{"a=1", "b=2"}, all)
	n, err := snap.Count(w.ctx)
	require.NoError(h, err)
	require.EqualValues(h, 2, n)
	require.NoError(h, snap.Close())
	require.NoError(h, snap.Close())
	texts, _ := w.logged(snap.Stamp())
	require.Equal(h, []string{"a=later", "-b", "c=later"}, texts, "the log goes on where the snapshot ends")
}

// Values that are larger than somebody wants are left out, with their sizes.
func testMost(h *host) {
	w := h.writer("a")
	w.write(set("a", "", engine.Any), set("b", "12345", engine.Any), set("c", "123456", engine.Any))
	shown := func(recs []engine.Record) (text string) {
		for _, r := range recs {
			text += fmt.Sprintf("%s=%s", r.Key.Key, r.Value)
			if r.Left > 0 {
				text += fmt.Sprintf("(%d)", r.Left)
			}
			text += " "
		}
		return text
	}
	names := keys("a", "b", "c", "d")
	for most, want := range map[int]string{0: "a= b=12345 c=123456 ", 5: "a= b=12345 c=(6) ", 4: "a= b=(5) c=(6) "} {
		recs, err := w.Read(w.ctx, names, engine.Reading{Most: most})
		require.NoError(h, err)
		require.Equal(h, want, shown(recs))
		require.NotZero(h, recs[2].Revision)
		one, err := w.Read(w.ctx, names[2:3], engine.Reading{Most: most})
		require.NoError(h, err)
		require.Equal(h, recs[2:], one)
		two, err := w.Read(w.ctx, append(keys("c"), engine.Key{DB: 1, Key: []byte("c")}), engine.Reading{Most: most})
		require.NoError(h, err)
		require.Equal(h, recs[2:], two)
		if w.Limits().Hold > 0 {
			held := engine.Reading{Most: most, Hold: w.next()}
			recs, err = w.Read(w.ctx, names, held)
			require.NoError(h, err)
			require.Equal(h, want, shown(recs))
			_, err = w.Write(w.ctx, &engine.Group{ID: held.Hold})
			require.NoError(h, err)
		}
		for _, bytes := range []int{0, 1000} {
			page, err := w.Scan(w.ctx, engine.Scan{Edge: true, Limit: 10, Bytes: bytes, Most: most})
			require.NoError(h, err)
			require.Equal(h, want, shown(page.Records))
			page, err = w.Scan(w.ctx, engine.Scan{Edge: true, Limit: 10, Bytes: bytes, Most: most, Bare: true})
			require.NoError(h, err)
			require.Equal(h, "a= b= c= ", shown(page.Records))
		}
	}
	page, err := w.Scan(w.ctx, engine.Scan{Edge: true, Limit: 10, Bytes: 5, Most: 5})
	require.NoError(h, err)
	require.Equal(h, "a= b=12345 ", shown(page.Records))
	require.True(h, page.More)
}
