package filestore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

func mustOpenLWW(t *testing.T, path string, limit, removals int64) *Store {
	t.Helper()
	s, err := Open(path, Options{Limit: limit, LWW: true, Removals: removals})
	require.NoError(t, err)
	return s
}

// remembered returns what a store remembers, as text by key.
func remembered(t *testing.T, s *Store) map[string]string {
	t.Helper()
	got := map[string]string{}
	require.NoError(t, s.EachEntry(func(key []byte, e LastUpdate) {
		got[string(key)] = fmt.Sprint(e.Stamp, " ", e.SID, " ", e.Removed)
	}, func() { clear(got) }))
	for key, text := range got {
		e, found, err := s.Entry([]byte(key))
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, text, fmt.Sprint(e.Stamp, " ", e.SID, " ", e.Removed), key)
	}
	return got
}

// from makes an update one of another server.
func from(u update.Update, sid uint16, at update.Stamp) update.Update {
	u.SID, u.Origin = sid, update.Origin{Log: 7, Stamp: at}
	return u
}

func TestVersionsGoWithTheRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.kct")
	s := mustOpenLWW(t, path, 1<<30, 0)
	s.Apply(10, []update.Update{set("a", "1"), set("b", "1"), set("c", "1"), remove("no such")})
	s.Apply(11, []update.Update{from(set("d", "1"), 9, 5)})
	s.Apply(0, []update.Update{remove("b")}) // expired, or evicted: not in the log
	require.NoError(t, s.Merge())
	want := map[string]string{"a": "7 0 false", "b": "8 0 true", "c": "9 0 false", "d": "5 9 false", "no such": "10 0 true"}
	require.Equal(t, want, remembered(t, s))
	require.EqualValues(t, 2, s.Meta().Removals)

	s.Apply(0, []update.Update{remove("c"), remove("c")})
	s.Apply(12, []update.Update{set("no such", "1")})
	want["no such"] = "12 0 false"
	require.Equal(t, want, remembered(t, s), "that c is gone is not known yet")
	require.NoError(t, s.Close())

	s = mustOpenLWW(t, path, 1<<30, 0)
	want["c"] = "9 0 true"
	require.Equal(t, want, remembered(t, s))
	require.NoError(t, s.Merge())
	require.Equal(t, want, remembered(t, s))
	require.EqualValues(t, 2, s.Meta().Removals)
	s.Apply(12, []update.Update{set("b", "2")})
	require.NoError(t, s.Merge())
	require.EqualValues(t, 1, s.Meta().Removals)
	s.Apply(12, []update.Update{set("c", "2")})
	require.NoError(t, s.Merge())
	require.Zero(t, s.Meta().Removals, "the last one")
	s.Apply(13, []update.Update{from(update.Update{Op: update.OpClear}, 3, 8)})
	s.Apply(14, []update.Update{set("e", "1")})
	require.Equal(t, map[string]string{"e": "14 0 false"}, remembered(t, s))
	require.Equal(t, Version{8, 3}, s.Cleared())
	require.NoError(t, s.Close())

	s, err := Open(path, Options{}) // what it has, it keeps
	require.NoError(t, err)
	require.True(t, s.LWW())
	require.Equal(t, map[string]string{"e": "14 0 false"}, remembered(t, s))
	require.Equal(t, Version{8, 3}, s.Cleared())
	require.NoError(t, s.Close())
}

// TestVersionsModel does random updates of this server and of others, evictions, clears,
// checkpoints and reopenings, and compares records and versions with maps.
func TestVersionsModel(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			m := &versionsModel{t: t, path: filepath.Join(t.TempDir(), "v.kct"), records: map[string]string{}, versions: map[string]Version{}}
			m.open()
			for step := range 400 {
				m.step(rnd, update.Stamp(100*(step+1)))
				if step%20 == 0 {
					m.compare()
				}
			}
			require.NoError(t, m.s.Merge())
			m.compare()
			require.Equal(t, len(m.versions)-len(m.records), removalsIn(remembered(t, m.s)), "an evicted record is one by now")
			require.EqualValues(t, len(m.versions)-len(m.records), m.s.Meta().Removals)
			require.NoError(t, m.s.Close())
		})
	}
}

type versionsModel struct {
	t        *testing.T
	path     string
	s        *Store
	records  map[string]string
	versions map[string]Version
}

func (m *versionsModel) step(rnd *rand.Rand, at update.Stamp) {
	switch n := rnd.IntN(100); {
	case n < 75:
		m.update(rnd, at)
	case n < 87:
		key := fmt.Sprintf("%02d", rnd.IntN(60))
		if _, found := m.records[key]; found {
			m.s.Apply(0, []update.Update{remove(key)})
			delete(m.records, key)
		}
	case n < 89:
		m.s.Apply(at, []update.Update{{Op: update.OpClear}})
		clear(m.records)
		clear(m.versions)
	case n < 92:
		setPiece(m.s, 1+rnd.IntN(20))
		_, err := m.s.mergeOn(true)
		require.NoError(m.t, err)
	case n < 95:
		m.s.freeze() // as a checkpoint does that has not written anything yet
		m.update(rnd, at)
		m.compare()
		require.NoError(m.t, m.s.Checkpoint())
	default:
		require.NoError(m.t, m.s.Close())
		m.open()
	}
}

// open opens the file, without a goroutine that flushes behind the test.
func (m *versionsModel) open() {
	m.s = mustOpenLWW(m.t, m.path, 1<<30, 0)
	m.s.cp.stop()
}

// update applies some updates at once; values are small and large, and many keys come twice.
func (m *versionsModel) update(rnd *rand.Rand, at update.Stamp) {
	ups := make([]update.Update, 1+rnd.IntN(5))
	for i := range ups {
		key := fmt.Sprintf("%02d", rnd.IntN(60))
		u := remove(key)
		if delete(m.records, key); rnd.IntN(3) > 0 {
			u = set(key, strings.Repeat("v", rnd.IntN(2)*rnd.IntN(3000)))
			m.records[key] = string(u.Value)
		}
		m.versions[key] = Version{Stamp: at - update.Stamp(len(ups)-1-i)}
		if rnd.IntN(2) == 0 {
			u = from(u, uint16(1+rnd.IntN(3)), update.Stamp(rnd.IntN(int(at))))
			m.versions[key] = Version{u.Origin.Stamp, u.SID}
		}
		ups[i] = u
	}
	m.s.Apply(at, ups)
}

func (m *versionsModel) compare() {
	m.t.Helper()
	requireEqual(m.t, m.records, m.s)
	got := map[string]Version{}
	for key := range remembered(m.t, m.s) {
		e, _, _ := m.s.Entry([]byte(key)) // remembered has seen that it works
		got[key] = e.Version
		value, found, err := m.s.Get([]byte("x"), []byte(key), nil)
		require.NoError(m.t, err)
		require.Equal(m.t, "x"+m.records[key], string(value))
		require.False(m.t, found && e.Removed, key)
	}
	require.Equal(m.t, m.versions, got)
}

func TestRecordsFromBeforeAreTheOldest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.kct")
	s := mustOpen(t, path, 1<<30)
	s.Apply(10, []update.Update{set("a", "1"), set("b", "1")})
	require.False(t, s.LWW())
	require.NoError(t, s.Close())
	s = mustOpenLWW(t, path, 1<<30, 0)
	s.Apply(11, []update.Update{set("b", "2")})
	want := map[string]string{"a": "1 0 false", "b": "11 0 false"}
	require.Equal(t, want, remembered(t, s))
	require.NoError(t, s.Close())
	s = mustOpenLWW(t, path, 1<<30, 0)
	require.Equal(t, want, remembered(t, s))
	s.Apply(12, []update.Update{{Op: update.OpClear}, set("c", "1")})
	require.Equal(t, map[string]string{"c": "12 0 false"}, remembered(t, s))
	require.NoError(t, s.Checkpoint())
	require.Zero(t, s.Meta().Base)
	require.NoError(t, s.Close())
}

// A process may be killed between any two transactions of a flush or a merge. The file is whole
// then: it has the state before the flush, and the log has the rest.
func TestAFileIsWholeBetweenTransactions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.kct")
	s := mustOpenLWW(t, path, 4<<20, 0)
	s.cp.stop() // so that nothing is merged behind the test
	const n = 4000
	for i := range n {
		s.Apply(update.Stamp(i+1), []update.Update{set(fmt.Sprintf("%05d", i), "old")})
	}
	require.NoError(t, s.Merge())
	before := everything(t, s)
	var ups []update.Update
	for i := n / 2; i < 2*n; i++ {
		u := set(fmt.Sprintf("%05d", i), strings.Repeat("new", 50))
		if i%3 == 0 {
			u = remove(string(u.Key))
		}
		ups = append(ups, from(u, 2, update.Stamp(i+1)))
	}
	apply := func(s *Store) {
		for i, u := range ups {
			s.Apply(update.Stamp(n+i+1), []update.Update{u})
		}
	}
	apply(s)
	after := everything(t, s)
	s.opts.Limit = 1 << 20 // so that a flush takes several transactions
	o, flushes := s.freeze(), 0
	for f := s.newFlushing(o); ; flushes++ {
		require.NoError(t, f.step(false))
		if f.done {
			break
		}
		l := openCopy(t, s)
		require.Equal(t, before, everything(t, l))
		apply(l)
		require.Equal(t, after, everything(t, l))
		require.NoError(t, l.Merge())
		require.Equal(t, after, everything(t, l))
		require.NoError(t, l.Close())
	}
	require.Greater(t, flushes, 2)
	s.takeOut()
	require.Equal(t, after, everything(t, s))
	for merges := 0; ; merges++ {
		setPiece(s, 1000)
		more, err := s.mergeOn(true)
		require.NoError(t, err)
		require.Equal(t, after, everything(t, s))
		l := openCopy(t, s)
		require.Equal(t, after, everything(t, l))
		require.NoError(t, l.Merge())
		require.Equal(t, after, everything(t, l))
		require.EqualValues(t, removalsIn(remembered(t, l)), l.Meta().Removals)
		require.NoError(t, l.Close())
		if !more {
			require.Greater(t, merges, 5)
			break
		}
	}
	require.Empty(t, s.runs.newest().runs)
	require.NoError(t, s.closeFile())
}

// everything returns all that can be read of a store.
func everything(t *testing.T, s *Store) string {
	t.Helper()
	n, err := s.Count()
	require.NoError(t, err)
	return fmt.Sprint(n, s.Size(), mustList(t, s, store.Start{Edge: true}), remembered(t, s))
}

// openCopy opens a copy of the file as it is now.
func openCopy(t *testing.T, s *Store) *Store {
	t.Helper()
	left := filepath.Join(t.TempDir(), "left.kct")
	f, err := os.Create(left)
	require.NoError(t, err)
	_, err = s.CopyTo(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return mustOpenLWW(t, left, 1<<30, 0)
}

func removalsIn(entries map[string]string) (n int) {
	for _, text := range entries {
		if len(text) > 5 && text[len(text)-4:] == "true" {
			n++
		}
	}
	return n
}

func TestRemovalsAreForgottenOldestFirst(t *testing.T) {
	s := mustOpenLWW(t, filepath.Join(t.TempDir(), "v.kct"), 1<<30, 10)
	s.Apply(1, []update.Update{set("kept", "1")})
	for i := range 10 {
		s.Apply(update.Stamp(100-i), []update.Update{remove(fmt.Sprintf("%03d", i))})
	}
	require.NoError(t, s.Merge())
	require.EqualValues(t, 10, s.Meta().Removals)
	require.Zero(t, s.Meta().Floor)
	s.Apply(101, []update.Update{remove("one more")})
	require.NoError(t, s.Merge())
	require.EqualValues(t, 5, s.Meta().Removals)
	require.EqualValues(t, 96, s.Meta().Floor)
	require.Equal(t, map[string]string{"kept": "1 0 false", "one more": "101 0 true", "000": "100 0 true", "001": "99 0 true",
		"002": "98 0 true", "003": "97 0 true"}, remembered(t, s))
	require.NoError(t, s.Close())
}
