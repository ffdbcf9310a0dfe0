// Package storetest holds the tests that every store must pass.
package storetest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// Run tests a store that keeps records in the order of their keys. open returns an empty one; Run
// closes it.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for name, test := range map[string]func(*testing.T, *checker){
		"empty":              testEmpty,
		"like a sorted map":  testModel,
		"places of scans":    testPlaces,
		"slices are lent":    testSlices,
		"updates as one":     testAtomic,
		"frozen at instants": testFreeze,
	} {
		t.Run(name, func(t *testing.T) {
			c := &checker{Store: open(t), model: map[string]string{}}
			test(t, c)
			require.NoError(t, c.Close())
		})
	}
}

// A checker is a store and what should be in it.
type checker struct {
	store.Store
	model map[string]string
	stamp update.Stamp
}

func set(key, value string) update.Update {
	return update.Update{Op: update.OpSet, Key: []byte(key), Value: []byte(value)}
}

func remove(key string) update.Update { return update.Update{Op: update.OpRemove, Key: []byte(key)} }

// apply gives updates to the store and to the model.
func (c *checker) apply(ups ...update.Update) {
	for _, u := range ups {
		switch u.Op {
		case update.OpClear:
			clear(c.model)
		case update.OpRemove:
			delete(c.model, string(u.Key))
		default:
			c.model[string(u.Key)] = string(u.Value)
		}
	}
	c.stamp++
	c.Apply(c.stamp, ups)
}

// compare compares all records of the store with the model.
func (c *checker) compare(t *testing.T) {
	t.Helper()
	n, err := c.Count()
	require.NoError(t, err)
	require.EqualValues(t, len(c.model), n)
	sorted := slices.Sorted(maps.Keys(c.model))
	require.Equal(t, sorted, c.scan(t, store.Start{Edge: true}))
	slices.Reverse(sorted)
	require.Equal(t, sorted, c.scan(t, store.Start{Edge: true, Backward: true}))
	for key, want := range c.model {
		value, found, err := c.Get([]byte("before"), []byte(key), nil)
		require.NoError(t, err)
		require.True(t, found, key)
		require.Equal(t, "before"+want, string(value))
	}
}

// scan returns the keys that a scan visits, and checks their values.
func (c *checker) scan(t *testing.T, from store.Start) []string {
	t.Helper()
	var keys []string
	require.NoError(t, c.Scan(from, func(key, value []byte) bool {
		keys = append(keys, string(key))
		require.Equal(t, c.model[string(key)], string(value))
		return true
	}))
	return keys
}

func testEmpty(t *testing.T, c *checker) {
	c.compare(t)
	_, found, err := c.Get(nil, []byte("a"), nil)
	require.NoError(t, err)
	require.False(t, found)
	c.apply(remove("a"), update.Update{Op: update.OpClear})
	c.compare(t)
}

// testModel applies random updates of few keys.
func testModel(t *testing.T, c *checker) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		var ups []update.Update
		for range 1 + r.IntN(5) {
			key := fmt.Sprint(r.IntN(60))
			switch n := r.IntN(40); {
			case n == 0:
				ups = append(ups, update.Update{Op: update.OpClear})
			case n < 12:
				ups = append(ups, remove(key))
			default:
				ups = append(ups, set(key, fmt.Sprint("v", i)))
			}
		}
		c.apply(ups...)
		c.compare(t)
	}
}

func testPlaces(t *testing.T, c *checker) {
	c.apply(set("b", "1"), set("d", "2"), set("f", ""))
	for _, row := range []struct {
		key                 string
		inclusive, backward bool
		want                []string
	}{
		{"d", true, false, []string{"d", "f"}}, {"d", false, false, []string{"f"}},
		{"c", true, false, []string{"d", "f"}}, {"c", false, false, []string{"d", "f"}},
		{"d", true, true, []string{"d", "b"}}, {"d", false, true, []string{"b"}},
		{"e", true, true, []string{"d", "b"}}, {"e", false, true, []string{"d", "b"}},
		{"", true, false, []string{"b", "d", "f"}}, {"a", false, true, nil},
		{"g", true, false, nil}, {"g", true, true, []string{"f", "d", "b"}},
	} {
		from := store.Start{Key: []byte(row.key), Inclusive: row.inclusive, Backward: row.backward}
		require.Equal(t, row.want, c.scan(t, from), "%+v", row)
	}
	visited := 0
	require.NoError(t, c.Scan(store.Start{Edge: true}, func(_, _ []byte) bool { visited++; return false }))
	require.Equal(t, 1, visited)
}

// testSlices changes the slices that it has given to the store and got from it.
func testSlices(t *testing.T, c *checker) {
	key, value := []byte("key"), []byte("value")
	c.Apply(1, []update.Update{{Op: update.OpSet, Key: key, Value: value}})
	copy(key, "xxx")
	copy(value, "yyyyy")
	c.model["key"] = "value"
	c.compare(t)
	got, _, err := c.Get(nil, []byte("key"), nil)
	require.NoError(t, err)
	copy(got, "zzzzz")
	c.compare(t)
}

// testAtomic has readers look for two records that are always changed together.
func testAtomic(t *testing.T, c *checker) {
	c.apply(set("a", "0"), set("b", "0"))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				var values []string
				_ = c.Scan(store.Start{Edge: true}, func(_, value []byte) bool {
					values = append(values, string(value))
					return true
				})
				if len(values) != 2 || values[0] != values[1] {
					t.Errorf("a and b are %v", values)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 300 {
		c.apply(set("a", fmt.Sprint(i)), set("b", fmt.Sprint(i)))
	}
	close(done)
	readers.Wait()
	c.compare(t)
}

// testFreeze is for stores that can be frozen.
func testFreeze(t *testing.T, c *checker) {
	freezer, ok := c.Store.(store.Freezer)
	if !ok {
		t.Skip("no Freezer")
	}
	for round := range 5 {
		c.apply(set(fmt.Sprint(round), "old"), set("always", fmt.Sprint(round)))
		want := maps.Clone(c.model)
		frozen, err := freezer.Freeze(func(take func()) { take() })
		require.NoError(t, err)
		c.apply(update.Update{Op: update.OpClear}, set(fmt.Sprint(round), "new"), set("later", ""))
		require.EqualValues(t, len(want), frozen.Count())
		got, last := map[string]string{}, []byte(nil)
		require.NoError(t, frozen.Scan(round%2 == 1, func(key, value []byte) error {
			if last != nil {
				require.Equal(t, round%2 == 1, bytes.Compare(key, last) < 0)
			}
			got[string(key)], last = string(value), bytes.Clone(key)
			return nil
		}))
		require.Equal(t, want, got)
		require.NoError(t, frozen.Close())
		require.NoError(t, frozen.Close())
		c.compare(t)
	}
}
