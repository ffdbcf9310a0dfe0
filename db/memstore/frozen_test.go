package memstore

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

func mustFreeze(t require.TestingT, s store.Store) *frozen {
	f, err := s.(store.Freezer).Freeze(func(take func()) { take() })
	require.NoError(t, err)
	return f.(*frozen)
}

// view is a frozen beside the map that it must show.
type view struct {
	frozen *frozen
	want   map[string]string
	order  func(a, b string) int
}

// scan visits the records of f, makes changes after every few, and compares.
func (v *view) scan(t require.TestingT, backward bool, change func()) {
	require.EqualValues(t, len(v.want), v.frozen.Count())
	got := map[string]string{}
	var keys []string
	err := v.frozen.Scan(backward, func(key, value []byte) error {
		_, twice := got[string(key)]
		must(t, !twice, "a record came twice")
		got[string(key)] = string(value)
		keys = append(keys, string(key))
		change()
		return nil
	})
	require.NoError(t, err)
	if !maps.Equal(v.want, got) {
		require.Equal(t, v.want, got)
	}
	if v.order != nil {
		if backward {
			slices.Reverse(keys)
		}
		require.True(t, slices.IsSortedFunc(keys, v.order))
	}
}

// Frozen views that begin and end at any time show what the map was when they began.
func TestFrozenAgreesWithAMap(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := &model{store: k.open(), order: k.order, want: map[string]string{}}
				var open []*view
				draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				for range draw.IntN(30) {
					m.apply(randomUpdates(draw)...)
				}
				change := func() {
					if draw.IntN(3) == 0 {
						m.apply(randomUpdates(draw)...)
					}
				}
				end := func(v *view) {
					if draw.IntN(5) > 0 { // else it is closed unread
						v.scan(t, k.order != nil && draw.IntN(2) == 0, change)
					}
					require.NoError(t, v.frozen.Close())
				}
				for range draw.IntN(6) {
					m.apply(randomUpdates(draw)...)
					open = append(open, &view{mustFreeze(t, m.store), maps.Clone(m.want), k.order})
					m.apply(randomUpdates(draw)...)
					if i := draw.IntN(len(open)); draw.IntN(2) == 0 {
						end(open[i])
						open = slices.Delete(open, i, i+1)
					}
				}
				for _, v := range open {
					end(v)
				}
				m.compare(t)
				require.NoError(t, m.store.Close())
				require.Zero(t, m.store.(interface{ Mapped() int64 }).Mapped())
			})
		})
	}
}

// randomUpdates makes some updates, seldom a clear, with keys as drawKey makes them.
func randomUpdates(r *rand.Rand) []update.Update {
	ups := make([]update.Update, r.IntN(20))
	for i := range ups {
		switch n := r.IntN(400); {
		case n == 0:
			ups[i].Op = update.OpClear
		case n < 150:
			ups[i] = update.Update{Op: update.OpRemove, Key: []byte(randomKey(r))}
		default:
			ups[i] = set(randomKey(r), strings.Repeat("v", r.IntN(200)*r.IntN(2)+r.IntN(3)))
		}
	}
	return ups
}

func randomKey(r *rand.Rand) string {
	switch n := r.IntN(600); {
	case n == 0:
		return ""
	case n < 10:
		return strings.Repeat("long", 50*n) + "key"
	case n < 200:
		return fmt.Sprintf("common:prefix:%03d", n)
	default:
		return fmt.Sprint(n)
	}
}

// Views taken, read and closed beside writers show one state each: every update moves one from a
// number to another.
func TestFrozenBesideWriters(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := k.open()
			var mu sync.Mutex // what a database's commit lock is
			want := map[string]string{}
			apply := func(ups ...update.Update) {
				mu.Lock()
				defer mu.Unlock()
				(&model{store: s, want: want}).apply(ups...)
			}
			for i := range 1500 {
				apply(set(fmt.Sprint("first", i), "value"))
			}
			freeze := func() *view {
				v := &view{order: k.order}
				f, err := s.(store.Freezer).Freeze(func(take func()) {
					mu.Lock()
					defer mu.Unlock()
					take()
					v.want = maps.Clone(want)
				})
				require.NoError(t, err)
				v.frozen = f.(*frozen)
				return v
			}
			scan := func() {
				for i := range 6 {
					v := freeze()
					v.scan(t, k.order != nil && i%2 == 0, func() {})
					require.NoError(t, v.frozen.Close())
				}
			}
			write := func() {
				switch n := rand.IntN(20000); {
				case n == 0:
					apply(update.Update{Op: update.OpClear})
				case n < 12000:
					apply(set(fmt.Sprint("first", n%2000), strings.Repeat(fmt.Sprint(n), n%90)))
				default:
					apply(update.Update{Op: update.OpRemove, Key: []byte(fmt.Sprint("first", n%2000))})
				}
			}
			beside(scan, write, write, scan)
			checkStore(t, s)
			require.NoError(t, s.Close())
		})
	}
}

// Records that a capacity drops are seen by those who froze before.
func TestFrozenCacheKeepsWhatIsDropped(t *testing.T) {
	s := NewCache(CacheOptions{CapCount: 1600})
	for i := range 5000 {
		s.Apply(0, []update.Update{set(fmt.Sprint(i), fmt.Sprint("value of ", i))})
	}
	want := map[string]string{}
	require.NoError(t, s.Scan(store.Start{Edge: true}, func(key, value []byte) bool {
		want[string(key)] = string(value)
		return true
	}))
	v := &view{frozen: mustFreeze(t, s), want: want}
	next := 5000
	v.scan(t, false, func() {
		for range 5 {
			s.Apply(0, []update.Update{set(fmt.Sprint(next), "new")})
			next++
		}
	})
	require.NoError(t, v.frozen.Close())
	require.NoError(t, s.Close())
}

// What is kept of one record does not grow with the number of its changes, and is dropped when the
// scan has passed it.
func TestFrozenKeepsChangedRecordsOnly(t *testing.T) {
	const records, changed = 15000, 300
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := k.open()
			defer s.Close() // always nil
			fill(s, 0, records, make([]byte, 100))
			before := s.Size()
			f := mustFreeze(t, s)
			for range 20 {
				fill(s, 0, changed, make([]byte, 100))
			}
			require.InDelta(t, before, s.Size(), 0.02*float64(before))
			require.Equal(t, changed, f.saved.Len())
			require.Less(t, f.saved.Bytes(), int64(2*changed*(100+16+8)))
			n := 0
			require.NoError(t, f.Scan(false, func(_, _ []byte) error {
				n++
				if n == records/2 {
					require.Less(t, f.saved.Len(), changed, "what is passed is dropped")
				}
				return nil
			}))
			require.Equal(t, records, n)
			require.Zero(t, f.saved.Len())
			fill(s, 0, changed, make([]byte, 50))
			require.Zero(t, f.saved.Len(), "nothing is kept for a scan that has ended")
			require.NoError(t, f.Close())
			require.NoError(t, f.Close())
			require.Zero(t, f.saved.Mapped())
		})
	}
}

// A clear hands the memory over, and a Close of the store does; it goes back when the last view is
// closed.
func TestFrozenOutlivesClearAndClose(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := k.open()
			m := &model{store: s, order: k.order, want: map[string]string{}}
			for i := range 1000 {
				m.apply(set(fmt.Sprint(i), strings.Repeat("v", i)))
			}
			first := &view{mustFreeze(t, s), maps.Clone(m.want), k.order}
			m.apply(set("7", "changed"), update.Update{Op: update.OpRemove, Key: []byte("8")})
			second := &view{mustFreeze(t, s), maps.Clone(m.want), k.order}
			m.apply(set("9", "lost"), update.Update{Op: update.OpClear}, set("10", "new"))
			third := &view{mustFreeze(t, s), maps.Clone(m.want), k.order}
			require.NoError(t, s.Close())

			first.scan(t, false, func() {})
			require.NoError(t, first.frozen.Close())
			arena := second.frozen.left.arena
			require.NotZero(t, arena.Mapped(), "the second view needs the memory")
			second.scan(t, false, func() {})
			require.NoError(t, second.frozen.Close())
			require.Zero(t, arena.Mapped())
			third.scan(t, false, func() {})
			require.NoError(t, third.frozen.Close())
		})
	}
}

func TestFrozenScanEndsWithTheVisitorsError(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := k.open()
			defer s.Close() // always nil
			fill(s, 0, 1000, nil)
			f := mustFreeze(t, s)
			enough, n := errors.New("enough"), 0
			require.ErrorIs(t, f.Scan(false, func(_, _ []byte) error {
				if n++; n == 300 {
					return enough
				}
				return nil
			}), enough)
			require.Equal(t, 300, n)
			require.NoError(t, f.Close())
		})
	}
}

// hooked is records that do something before they are read.
type hooked struct {
	records
	before func()
}

func (h *hooked) Scan(from store.Start, visit func(key, value []byte) bool) error {
	h.before()
	return h.records.Scan(from, visit)
}

// A clear comes when the scan has found out where the records are, and has not read them yet.
func TestFrozenScanMeetsAClear(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			m := &model{store: k.open(), order: k.order, want: map[string]string{}}
			for i := range 1000 {
				m.apply(set(fmt.Sprint(i), "old"))
			}
			v := &view{mustFreeze(t, m.store), maps.Clone(m.want), k.order}
			part := 0
			v.frozen.records = &hooked{v.frozen.records, func() {
				if part++; part == 3 {
					m.apply(update.Update{Op: update.OpClear}, set("7", "new"), set("new", "new"))
				}
			}}
			v.scan(t, false, func() {})
			require.Equal(t, 3, part, "the scan goes on elsewhere")
			require.NoError(t, v.frozen.Close())
			require.NoError(t, m.store.Close())
		})
	}
}
