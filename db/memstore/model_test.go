package memstore

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// kinds are the stores under test. A Tree has an order; nil means that only the store knows it.
var kinds = []struct {
	name  string
	open  func() store.Store
	order func(a, b string) int
}{
	{"hash", func() store.Store { return NewHash(HashOptions{}) }, nil},
	{"cache", func() store.Store { return NewCache(CacheOptions{}) }, nil},
	{"tree", func() store.Store { return NewTreeStore() }, strings.Compare},
}

// model is a store beside a plain map.
type model struct {
	store store.Store
	order func(a, b string) int
	want  map[string]string
}

func (m *model) apply(ups ...update.Update) {
	for _, u := range ups {
		switch u.Op {
		case update.OpSet:
			m.want[string(u.Key)] = string(u.Value)
		case update.OpRemove:
			delete(m.want, string(u.Key))
		case update.OpClear:
			clear(m.want)
		}
	}
	m.store.Apply(0, ups)
}

// keys returns the model's keys in the store's order.
func (m *model) keys(t require.TestingT) []string {
	keys := make([]string, 0, len(m.want))
	if m.order != nil {
		for k := range m.want {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, m.order)
		return keys
	}
	return scanKeys(t, m.store, store.Start{Edge: true})
}

// compare compares store and model as a whole.
func (m *model) compare(t require.TestingT) {
	n, err := m.store.Count()
	require.NoError(t, err)
	require.EqualValues(t, len(m.want), n)
	keys := m.keys(t)
	require.Len(t, keys, len(m.want))
	i := 0
	err = m.store.Scan(store.Start{Edge: true}, func(key, value []byte) bool {
		must(t, keys[i] == string(key), "order")
		must(t, m.want[keys[i]] == string(value), "the wrong value")
		i++
		return true
	})
	require.NoError(t, err)
	require.Equal(t, len(keys), i)
	if m.order != nil {
		slices.Reverse(keys)
		require.Equal(t, keys, scanKeys(t, m.store, store.Start{Edge: true, Backward: true}))
	}
	checkStore(t, m.store)
}

// compareGet looks one key up, beside something that is in the buffer already.
func (m *model) compareGet(t require.TestingT, key string) {
	value, found, err := m.store.Get([]byte("before"), []byte(key), nil)
	require.NoError(t, err)
	want, ok := m.want[key]
	require.Equal(t, ok, found)
	require.Equal(t, "before"+want, string(value))
}

// compareScan scans from a key that may be absent.
func (m *model) compareScan(t require.TestingT, from store.Start) {
	keys := m.keys(t)
	var want []string
	switch {
	case m.order == nil:
		want = m.hashRest(t, keys, from)
	case from.Backward:
		n := sort.Search(len(keys), func(i int) bool { return m.order(keys[i], string(from.Key)) > 0 })
		want = slices.Clone(keys[:n])
		slices.Reverse(want)
		if !from.Inclusive {
			want = slices.DeleteFunc(want, func(k string) bool { return k == string(from.Key) })
		}
	default:
		n := sort.Search(len(keys), func(i int) bool { return m.order(keys[i], string(from.Key)) >= 0 })
		want = keys[n:]
		if !from.Inclusive && n < len(keys) && keys[n] == string(from.Key) {
			want = want[1:]
		}
	}
	got := scanKeys(t, m.store, from)
	require.Equal(t, len(want), len(got))
	require.True(t, slices.Equal(want, got))
}

// hashRest returns what follows a key in a hash. The place of an absent key is found by putting it
// in for a moment.
func (m *model) hashRest(t require.TestingT, keys []string, from store.Start) []string {
	at := slices.Index(keys, string(from.Key))
	if at >= 0 {
		if !from.Inclusive {
			at++
		}
		return keys[at:]
	}
	m.apply(update.Update{Op: update.OpSet, Key: from.Key})
	with := m.keys(t)
	m.apply(update.Update{Op: update.OpRemove, Key: from.Key})
	return with[slices.Index(with, string(from.Key))+1:]
}

func scanKeys(t require.TestingT, s store.Store, from store.Start) []string {
	var keys []string
	err := s.Scan(from, func(key, _ []byte) bool {
		keys = append(keys, string(key))
		return true
	})
	require.NoError(t, err)
	if keys == nil {
		keys = []string{}
	}
	return keys
}

// drawKey draws keys with common prefixes, empty and very long ones among them.
func drawKey(t *rapid.T) string {
	n := rapid.IntRange(0, 400).Draw(t, "key")
	switch {
	case n == 0:
		return ""
	case n < 10:
		return strings.Repeat("long", 50*n) + "key"
	case n < 20:
		return strings.Repeat("\x00", n-9)
	case n < 200:
		return fmt.Sprintf("common:prefix:%03d", n)
	}
	return fmt.Sprintf("%d", n)
}

func drawValue(t *rapid.T) string {
	n := rapid.IntRange(0, 400).Draw(t, "value")
	if n == 400 {
		n *= 2000
	} else if n > 380 {
		n *= 20
	}
	return strings.Repeat(string(rune('a'+n%26)), n)
}

func drawUpdate(t *rapid.T) update.Update {
	switch n := rapid.IntRange(0, 199).Draw(t, "op"); {
	case n == 0:
		return update.Update{Op: update.OpClear}
	case n < 50:
		return update.Update{Op: update.OpRemove, Key: []byte(drawKey(t))}
	}
	return update.Update{Op: update.OpSet, Key: []byte(drawKey(t)), Value: []byte(drawValue(t))}
}

// actions returns what rapid may do with a model.
func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"apply one": func(t *rapid.T) { m.apply(drawUpdate(t)) },
		"apply many": func(t *rapid.T) {
			m.apply(rapid.SliceOfN(rapid.Custom(drawUpdate), 0, 100).Draw(t, "updates")...)
		},
		"get": func(t *rapid.T) { m.compareGet(t, drawKey(t)) },
		"scan": func(t *rapid.T) {
			from := store.Start{Key: []byte(drawKey(t)), Inclusive: rapid.Bool().Draw(t, "inclusive")}
			if m.order != nil {
				from.Backward = rapid.Bool().Draw(t, "backward")
			}
			m.compareScan(t, from)
		},
		"": func(t *rapid.T) { m.compare(t) },
	}
}

func TestStoresAgreeWithAMap(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := &model{store: k.open(), order: k.order, want: map[string]string{}}
				t.Repeat(m.actions())
				require.NoError(t, m.store.Close())
				require.Zero(t, m.store.(interface{ Mapped() int64 }).Mapped())
			})
		})
	}
}
