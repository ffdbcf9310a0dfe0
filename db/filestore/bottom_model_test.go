package filestore

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// A bottomModel is a store and a map that has the same records. Keys and values have all sizes, so
// that records move between the tree, the packed records and the runs.
type bottomModel struct {
	t    *testing.T
	rnd  *rand.Rand
	o    Options
	path string
	s    *Store
	want map[string]string
	at   update.Stamp
	held []heldRecords
}

// heldRecords is a Frozen, and what it has.
type heldRecords struct {
	store.Frozen
	want map[string]string
}

// TestBottomModel does random updates, pieces of merges, commits that fail although they took
// place, and reopenings.
func TestBottomModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &bottomModel{t: t, rnd: rand.New(rand.NewPCG(seed, 5)), want: map[string]string{}, path: filepath.Join(t.TempDir(), "b.kct")}
			m.o = Options{Limit: 1 << 30, LWW: seed%2 == 1}
			if seed%4 >= 2 {
				m.o.Limit = 200 << 10
			}
			m.open()
			for range 300 {
				m.step()
			}
			m.release()
			require.NoError(t, m.s.Merge())
			m.compare()
			require.NoError(t, m.s.closeFile())
		})
	}
}

func (m *bottomModel) open() {
	s, err := Open(m.path, m.o)
	require.NoError(m.t, err)
	s.cp.stop()
	m.s = s
}

func (m *bottomModel) key() string {
	n := m.rnd.IntN(150)
	key := fmt.Sprintf("%03d", n)
	switch n % 25 {
	case 0:
		return ""
	case 7:
		return key + strings.Repeat("k", 900+n)
	case 8:
		return key + strings.Repeat("k", 1100+n)
	case 9:
		return key + strings.Repeat("k", MaxKeySize-3)
	}
	return key
}

func (m *bottomModel) value() string {
	sizes := []int{0, 0, 10, 100, 100, 100, 900, 1010, 1100, 3000, 17000, 60000}
	n := sizes[m.rnd.IntN(len(sizes))]
	return strings.Repeat(string(rune('a'+m.rnd.IntN(26))), n)
}

// update does some updates, each by itself or all together.
func (m *bottomModel) update() {
	var ups []update.Update
	together := m.rnd.IntN(2) == 0
	for range 1 + m.rnd.IntN(30) {
		m.at++
		key := m.key()
		if m.rnd.IntN(4) == 0 {
			ups = append(ups, remove(key))
			delete(m.want, key)
		} else {
			value := m.value()
			ups = append(ups, set(key, value))
			m.want[key] = value
		}
		if !together {
			m.s.Apply(m.at, ups)
			ups = nil
		}
	}
	m.s.Apply(m.at, ups)
}

func (m *bottomModel) step() {
	switch n := m.rnd.IntN(100); {
	case n < 40:
		m.update()
	case n < 55:
		require.NoError(m.t, m.s.Checkpoint())
	case n < 82:
		setPiece(m.s, 1+m.rnd.IntN(25))
		// A reader that begins before such a commit is not safe from bbolt, which then reads the
		// list of free pages anew, with the pages that this reader needs.
		late := m.rnd.IntN(5) == 0 && len(m.held) == 0
		if late {
			failLate(m.s)
		}
		_, err := m.s.mergeOn(m.rnd.IntN(3) > 0)
		if err != nil {
			require.ErrorIs(m.t, err, errLate)
		} else if late {
			_ = m.s.Amend(func(*Meta) {})
		}
	case n < 84:
		m.at++
		m.s.Apply(m.at, []update.Update{{Op: update.OpClear}})
		clear(m.want)
	case n < 88:
		m.release()
		require.NoError(m.t, m.s.Checkpoint())
		require.NoError(m.t, m.s.closeFile())
		m.open()
		m.compare()
	case n < 91 && len(m.held) < 3:
		f, err := m.s.Freeze(func(take func()) { take() })
		require.NoError(m.t, err)
		require.Equal(m.t, int64(len(m.want)), f.Count())
		m.held = append(m.held, heldRecords{f, maps.Clone(m.want)})
	case n < 93:
		m.release()
	default:
		m.compare()
	}
}

// release compares what was held, and lets it go.
func (m *bottomModel) release() {
	for _, h := range m.held {
		for _, backward := range []bool{false, true} {
			keys := slices.Sorted(maps.Keys(h.want))
			if backward {
				slices.Reverse(keys)
			}
			require.NoError(m.t, h.Scan(backward, func(key, value []byte) error {
				require.NotEmpty(m.t, keys)
				require.Equal(m.t, short(keys[0]), short(string(key)))
				require.Equal(m.t, short(h.want[keys[0]]), short(string(value)))
				keys = keys[1:]
				return nil
			}))
			require.Empty(m.t, keys)
		}
		require.NoError(m.t, h.Close())
	}
	m.held = nil
}

func short(s string) string {
	if len(s) > 12 {
		return fmt.Sprint(s[:12], "…", len(s))
	}
	return s
}

// compare compares the records, from anywhere in both directions.
func (m *bottomModel) compare() {
	m.t.Helper()
	keys := slices.Sorted(maps.Keys(m.want))
	size := int64(0)
	for _, k := range keys {
		size += int64(len(k) + len(m.want[k]))
	}
	starts := []store.Start{{Edge: true}, {Edge: true, Backward: true}}
	for range 6 {
		starts = append(starts, store.Start{Key: []byte(m.key()), Inclusive: m.rnd.IntN(2) == 0, Backward: m.rnd.IntN(2) == 0})
	}
	if to := m.s.Meta().MergedTo; to != nil {
		for _, key := range [][]byte{to, append(bytes.Clone(to), 0)} {
			for i := range 4 {
				starts = append(starts, store.Start{Key: key, Inclusive: i%2 == 0, Backward: i > 1})
			}
		}
	}
	for _, from := range starts {
		var want, got []string
		for _, k := range keys {
			c := strings.Compare(k, string(from.Key))
			if from.Edge || c == 0 && from.Inclusive || c != 0 && (c > 0) != from.Backward {
				want = append(want, short(k)+"="+short(m.want[k]))
			}
		}
		if from.Backward {
			slices.Reverse(want)
		}
		require.NoError(m.t, m.s.Scan(from, func(key, value []byte) bool {
			got = append(got, short(string(key))+"="+short(string(value)))
			return true
		}))
		require.Equal(m.t, want, got, "%+v", from)
	}
	for range 20 {
		key := m.key()
		value, found, err := m.s.Get(nil, []byte(key), nil)
		require.NoError(m.t, err)
		want, there := m.want[key]
		require.Equal(m.t, there, found, short(key))
		require.Equal(m.t, short(want), short(string(value)))
	}
	m.compareBulk()
	n, err := m.s.Count()
	require.NoError(m.t, err)
	require.Equal(m.t, int64(len(m.want)), n)
	require.Equal(m.t, size, m.s.Size())
}

// compareBulk compares many keys at a time, in order and not, some of them twice.
func (m *bottomModel) compareBulk() {
	m.t.Helper()
	for _, sorted := range []bool{false, true} {
		keys := make([]string, 1+m.rnd.IntN(300))
		for i := range keys {
			keys[i] = m.key()
		}
		if sorted {
			slices.Sort(keys)
		}
		var asked [][]byte
		for _, key := range keys {
			asked = append(asked, []byte(key))
		}
		i, size := 0, 0 // size is that of all values
		for _, key := range keys {
			size += len(m.want[key])
		}
		done, err := m.s.GetBulk(asked, func(at int, value []byte) {
			for ; i < at; i++ {
				require.NotContains(m.t, m.want, keys[i], short(keys[i]))
			}
			require.Equal(m.t, short(m.want[keys[i]]), short(string(value)))
			i++
		})
		require.NoError(m.t, err)
		for ; i < done; i++ {
			require.NotContains(m.t, m.want, keys[i], short(keys[i]))
		}
		require.True(m.t, done == len(keys) || size >= mostBulkBytes, "%d of %d keys, %d bytes", done, len(keys), size)
	}
}
