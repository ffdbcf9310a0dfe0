package db

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// site is a server reduced to what convergence depends on: a database, its log, and how far another
// server's log has been followed.
type site struct {
	t       testing.TB
	sid     uint16
	dir     string
	raw     string
	removed int64
	ahead   atomic.Int64 // seconds of its clock before the others'
	clk     *clock
	c       *Catalog
	place   sitePlace
	master  *site
}

// sitePlace is what package replication remembers with the data, in short.
type sitePlace struct {
	At    ulog.Stamp
	Marks map[uint64]ulog.Stamp
}

func newSites(t testing.TB, n int, raw string, removals int64) []*site {
	clk := newClock()
	sites := make([]*site, n)
	for i := range sites {
		sites[i] = &site{t: t, sid: uint16(i + 1), dir: t.TempDir(), raw: raw, removed: removals, clk: clk}
		sites[i].open()
	}
	for i := range sites {
		sites[i].master = sites[(i+1)%n]
	}
	return sites
}

func (s *site) now() time.Time { return s.clk.now().Add(time.Duration(s.ahead.Load()) * time.Second) }

func (s *site) open() {
	path := s.raw
	if path != ":" {
		path = filepath.Join(s.dir, path)
	}
	c, err := Open([]string{path}, Options{LogDir: filepath.Join(s.dir, "ulog"), SID: s.sid, Now: s.now, CheckpointSize: 2 << 10, Removals: s.removed})
	require.NoError(s.t, err)
	s.c, s.place = c, sitePlace{}
	if state := s.db().info.Remembered; state != nil {
		require.NoError(s.t, json.Unmarshal(state, &s.place))
	}
	if s.place.Marks == nil {
		s.place.Marks = map[uint64]ulog.Stamp{}
	}
}

func (s *site) close() {
	if s.c != nil {
		require.NoError(s.t, s.c.Close())
		s.c = nil
	}
}

// crash goes on with what a killed process would have left.
func (s *site) crash() {
	left := image(s.t, s.dir)
	s.close()
	s.dir = left
	s.open()
}

func (s *site) db() *DB { return s.c.DB(0) }

// pull takes up to limit updates of the master, as package replication does. moved tells whether
// there were any.
func (s *site) pull(limit int) (moved bool) {
	r, err := s.master.c.Log().NewReader(s.place.At)
	require.NoError(s.t, err)
	defer r.Close()
	var ups []ulog.Update
	var stamps []ulog.Stamp
	end := s.place.At
	for range limit {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(s.t, err)
		u, err := ulog.ParseMessage(bytes.Clone(e.Message))
		require.NoError(s.t, err)
		end = e.Stamp
		if u.Origin = e.Origin; s.wants(&u, e.Stamp, ups) {
			ups, stamps = append(ups, u), append(stamps, e.Stamp)
		}
	}
	noted := 0
	require.NoError(s.t, s.db().Replicate(nil, ups, func(n int) *ulog.Position {
		for ; noted < n; noted++ {
			if o := ups[noted].Origin; o.Log != ulog.UnknownLog {
				s.place.Marks[o.Log] = max(s.place.Marks[o.Log], o.Stamp)
			}
			s.place.At = stamps[noted]
		}
		state, err := json.Marshal(s.place)
		require.NoError(s.t, err)
		return &ulog.Position{State: state}
	}, nil))
	moved = end > s.place.At || len(ups) > 0
	s.place.At = end
	return moved
}

func (s *site) wants(u *ulog.Update, at ulog.Stamp, ups []ulog.Update) bool {
	known := s.place.Marks[u.Origin.Log]
	for i := range ups {
		if ups[i].Origin.Log == u.Origin.Log {
			known = max(known, ups[i].Origin.Stamp)
		}
	}
	switch {
	case u.SID == s.sid:
		return false
	case u.Origin.Log == 0:
		u.Origin = ulog.Origin{Log: ulog.LogKey(s.master.c.Log().ID()), Stamp: at}
	case u.Origin.Log == ulog.UnknownLog:
	case u.Origin.Log == ulog.LogKey(s.c.Log().ID()) || u.Origin.Stamp <= known:
		return false
	}
	return true
}

// settle delivers everything to everybody.
func settle(sites []*site) {
	for quiet := 0; quiet < len(sites); {
		for _, s := range sites {
			if quiet++; s.pull(100) {
				quiet = 0
			}
		}
	}
}

// stored returns the records that live for whoever looks, with their expiration times.
func (s *site) stored() map[string]string {
	got := map[string]string{}
	require.NoError(s.t, s.db().Stored(func(key, stored []byte) error {
		if xt, _, ok := record.Split(stored); ok && xt > s.clk.seconds.Load()+2*hour {
			got[string(key)] = string(stored)
		}
		return nil
	}))
	return got
}

const hour = 3600

// history is the newest update of each key, by its version.
type history struct {
	records map[string]written
	cleared filestore.Version
}

type written struct {
	filestore.Version
	stored string // "": removed
}

// note notes what a site has just done to keys, one update after the other.
func (h *history) note(s *site, keys ...string) {
	last := s.c.Log().Last()
	for i, key := range keys {
		w := written{Version: filestore.Version{Stamp: last - ulog.Stamp(len(keys)-1-i), SID: s.sid}}
		stored, found, err := s.db().store.Get(nil, []byte(key), nil)
		require.NoError(s.t, err)
		if found {
			w.stored = string(stored)
		}
		if h.records[key].Less(w.Version) {
			h.records[key] = w
		}
	}
}

// want returns what everybody should have in the end.
func (h *history) want(s *site) map[string]string {
	want := map[string]string{}
	for key, w := range h.records {
		if xt, _, _ := record.Split([]byte(w.stored)); w.stored != "" && h.cleared.Less(w.Version) && xt > s.clk.seconds.Load()+2*hour {
			want[key] = w.stored
		}
	}
	return want
}

// TestUpdatesFromAllSidesConverge lets two servers, and three in a ring, change the same keys in
// whatever order, and be cut off, killed and have their clocks set. In the end each has of every
// key the update with the greatest version.
func TestUpdatesFromAllSidesConverge(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			left := 20
			rapid.Check(t, func(rt *rapid.T) {
				if left--; left < 0 && os.Getenv("GOTYCOON_BIG") == "" {
					return // each takes many fsyncs
				}
				converge(rapidTB{t, rt}, rt, newSites(rapidTB{t, rt}, n, "a.kct#lww=true", 0))
			})
		})
	}
}

// rapidTB is a test whose failures rapid makes smaller.
type rapidTB struct {
	testing.TB
	rt *rapid.T
}

func (t rapidTB) Errorf(format string, args ...any) { t.rt.Errorf(format, args...) }
func (t rapidTB) FailNow()                          { t.rt.FailNow() }
func (t rapidTB) Logf(format string, args ...any)   { t.rt.Logf(format, args...) }

func converge(t testing.TB, rt *rapid.T, sites []*site) {
	defer func() {
		for _, s := range sites {
			s.close()
		}
	}()
	h := &history{records: map[string]written{}}
	site := rapid.SampledFrom(sites)
	for range rapid.IntRange(1, 60).Draw(rt, "steps") {
		convergeStep(t, rt, h, site.Draw(rt, "site"))
	}
	settle(sites)
	want := h.want(sites[0])
	for _, s := range sites {
		require.Equal(t, want, s.stored(), "server %d", s.sid)
	}
	for _, s := range sites {
		s.crash()
		require.Equal(t, want, s.stored(), "server %d after a kill", s.sid)
		require.NoError(t, s.db().file.Merge())
		requireTidy(t, s.db())
	}
}

var convergeSteps = []string{"set", "set", "set", "append", "remove", "mortal", "bulk", "transaction", "clear", "pull", "pull", "pull", "pull all",
	"crash", "checkpoint", "clock", "time", "vacuum"}

func convergeStep(t testing.TB, rt *rapid.T, h *history, s *site) {
	keys := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
	value := func() []byte { return fmt.Appendf(nil, "%d.%d", s.sid, s.c.Log().Last()) }
	switch rapid.SampledFrom(convergeSteps).Draw(rt, "step") {
	case "set":
		key := keys.Draw(rt, "key")
		require.NoError(t, s.db().Set(nil, []byte(key), value(), record.Never))
		h.note(s, key)
	case "append":
		key := keys.Draw(rt, "key")
		require.NoError(t, s.db().Append(nil, []byte(key), []byte("+"), record.XT(24*hour)))
		h.note(s, key)
	case "remove":
		key := keys.Draw(rt, "key")
		if err := s.db().Remove(nil, []byte(key)); !errors.Is(err, dberr.ErrNoRecord) {
			require.NoError(t, err)
		}
		h.note(s, key)
	case "mortal":
		key := keys.Draw(rt, "key")
		require.NoError(t, s.db().Set(nil, []byte(key), value(), 5))
		h.note(s, key)
	case "bulk":
		var recs []Record
		for range rapid.IntRange(1, 4).Draw(rt, "n") {
			recs = append(recs, Record{Key: []byte(keys.Draw(rt, "key")), Value: value(), XT: record.Never})
		}
		_, err := s.db().SetBulk(nil, recs, rapid.Bool().Draw(rt, "atomic"))
		require.NoError(t, err)
		var list []string
		for _, r := range recs {
			list = append(list, string(r.Key))
		}
		h.note(s, list...)
	case "transaction":
		convergeTransaction(t, rt, h, s, keys)
	case "clear":
		if rapid.IntRange(0, 2).Draw(rt, "really") == 0 {
			require.NoError(t, s.db().Clear(nil))
			if v := (filestore.Version{Stamp: s.c.Log().Last(), SID: s.sid}); h.cleared.Less(v) {
				h.cleared = v
			}
		}
	case "pull":
		s.pull(rapid.IntRange(1, 5).Draw(rt, "n"))
	case "pull all":
		s.pull(1000)
	case "crash":
		s.crash()
	case "checkpoint":
		require.NoError(t, s.db().file.Checkpoint())
	case "clock":
		s.ahead.Store(rapid.SampledFrom([]int64{-hour, 0, hour}).Draw(rt, "ahead"))
	case "time":
		s.clk.advance(rapid.Int64Range(1, 10).Draw(rt, "seconds"))
	case "vacuum":
		require.NoError(t, s.db().Vacuum(nil, 0))
	}
}

// convergeTransaction stores two records and removes one, all at once, behind a clear perhaps.
func convergeTransaction(t testing.TB, rt *rapid.T, h *history, s *site, keys *rapid.Generator[string]) {
	tx, err := s.db().Begin(nil, false)
	require.NoError(t, err)
	some := map[string]bool{}
	for len(some) < 3 {
		some[keys.Draw(rt, "key")] = true
	}
	list := slices.Sorted(maps.Keys(some)) // as they are committed
	clears := rapid.IntRange(0, 9).Draw(rt, "clear") == 0
	if clears {
		require.NoError(t, tx.DB().Clear(nil))
	}
	for _, key := range list[:2] {
		require.NoError(t, tx.DB().Set(nil, []byte(key), []byte("t"), record.Never))
	}
	if err := tx.DB().Remove(nil, []byte(list[2])); !errors.Is(err, dberr.ErrNoRecord) {
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit(nil))
	if v := (filestore.Version{Stamp: s.c.Log().Last() - 3, SID: s.sid}); clears && h.cleared.Less(v) {
		h.cleared = v
	}
	h.note(s, list...)
}

// requireTidy requires that what a file remembers is what it has, and that it has counted its
// removals.
func requireTidy(t testing.TB, d *DB) {
	t.Helper()
	has := map[string]bool{}
	require.NoError(t, d.Stored(func(key, _ []byte) error { has[string(key)] = true; return nil }))
	removals := int64(0)
	require.NoError(t, d.file.EachEntry(func(key []byte, e filestore.LastUpdate) {
		require.Equal(t, !e.Removed, has[string(key)], "%q", key)
		if e.Removed {
			removals++
		}
	}, func() { require.Fail(t, "everything is in the file") }))
	require.Equal(t, removals, d.file.Meta().Removals)
}

func TestAWriteThatSawAnotherCounts(t *testing.T) {
	s := newSites(t, 2, "a.kct#lww=true", 0)
	a, b := s[0], s[1]
	a.ahead.Store(hour)
	mustSet(t, a.db(), "k", "first")
	b.pull(10)
	mustSet(t, b.db(), "k", "second") // by a clock that is an hour behind
	settle(s)
	require.Equal(t, map[string]string{"k": "second"}, contents(t, a.db()))
	require.Equal(t, map[string]string{"k": "second"}, contents(t, b.db()))
	a.close()
	b.close()
}

// The databases come to a new log, with the clock behind: what is written then is newer than what
// there is all the same.
func TestAWriteToANewLogCounts(t *testing.T) {
	s := newSites(t, 2, "a.kct#lww=true", 0)
	a, b := s[0], s[1]
	mustSet(t, a.db(), "k", "first")
	settle(s)
	for range 2 { // the log may be empty when it is opened again
		b.close()
		require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "ulog")))
		b.ahead.Add(-hour)
		b.open()
	}
	a.place = sitePlace{Marks: map[uint64]ulog.Stamp{}}
	mustSet(t, b.db(), "k", "second")
	settle(s)
	require.Equal(t, map[string]string{"k": "second"}, contents(t, a.db()))
	require.Equal(t, map[string]string{"k": "second"}, contents(t, b.db()))
	a.close()
	b.close()
}

// A clear that comes late leaves what is newer, also with those who take updates as they come.
func TestALateClearLeavesWhatIsNewer(t *testing.T) {
	s := newSites(t, 2, "a.kct#lww=true", 0)
	a, b := s[0], s[1]
	c := &site{t: t, sid: 3, dir: t.TempDir(), raw: ":", clk: a.clk, master: b}
	c.open()
	mustSet(t, a.db(), "both", "a")
	mustSet(t, b.db(), "old", "b")
	settle(s)
	require.NoError(t, a.db().Clear(nil))
	a.clk.advance(1)
	mustSet(t, b.db(), "new", "b")
	mustSet(t, b.db(), "gone", "b")
	require.NoError(t, b.db().Remove(nil, []byte("gone")))
	settle(s)
	settle([]*site{c})
	for _, site := range []*site{a, b, c} {
		require.Equal(t, map[string]string{"new": "b"}, contents(t, site.db()), "server %d", site.sid)
		site.close()
	}
}

func TestOnlyFilesInByteOrderKeepVersions(t *testing.T) {
	dir := t.TempDir()
	for _, raw := range []string{":#lww=true", "%#lww=true", "*#lww=true", filepath.Join(dir, "a.kcx#lww=true"),
		filepath.Join(dir, "a.kct#lww=true#rcomp=dec")} {
		_, err := Open([]string{raw}, Options{})
		require.ErrorIs(t, err, expr.ErrNoVersions, raw)
	}
	path := filepath.Join(dir, "b.kct")
	require.NoError(t, mustOpen(t, Options{}, path+"#lww=true").Close())
	_, err := Open([]string{path + "#rcomp=dec"}, Options{})
	require.ErrorIs(t, err, expr.ErrNoVersions)
	require.True(t, mustOpen(t, Options{}, path).DB(0).versions.lww(), "it is in the file")
}

// What was there before versions were kept is replaced by whatever comes, as it was before.
func TestUpdatesOnTheirWayWhenVersionsBegin(t *testing.T) {
	s := newSites(t, 2, "a.kct", 0)
	a, b := s[0], s[1]
	mustSet(t, a.db(), "k", "old")
	mustSet(t, a.db(), "kept", "old")
	settle(s)
	mustSet(t, a.db(), "k", "new")
	for _, site := range s {
		site.clk.advance(1)
		site.close()
		site.raw = "a.kct#lww=true"
		site.open()
	}
	require.NoError(t, b.db().file.Checkpoint())
	settle(s)
	for _, site := range s {
		require.Equal(t, map[string]string{"k": "new", "kept": "old"}, contents(t, site.db()))
		site.close()
	}
}
