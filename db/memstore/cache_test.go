package memstore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

func applySet(s store.Store, key, value string) { s.Apply(0, []update.Update{set(key, value)}) }

func has(t *testing.T, c *Cache, key string) bool {
	t.Helper()
	_, found := c.peek(key)
	return found
}

// peek looks a record up without using it.
func (c *Cache) peek(key string) (value string, found bool) {
	_ = c.Scan(store.Start{Key: []byte(key), Inclusive: true}, func(k, v []byte) bool {
		value, found = string(v), string(k) == key
		return false
	})
	return value, found
}

// sameSlot returns n keys of one slot.
func sameSlot(c *Cache, n int) []string {
	var keys []string
	for i := 0; len(keys) < n; i++ {
		key := fmt.Sprint("key", i)
		if tableOf(c.index.hash([]byte(key)))*cacheSlots/tableCount == 3 {
			keys = append(keys, key)
		}
	}
	return keys
}

func TestCapacityInRecords(t *testing.T) {
	c := NewCache(CacheOptions{CapCount: 160})
	defer c.Close() // always nil
	for i := range 10000 {
		applySet(c, fmt.Sprint(i), "value")
		n, _ := c.Count()
		require.LessOrEqual(t, n, int64(176))
		require.True(t, has(t, c, fmt.Sprint(i)))
	}
	n, _ := c.Count()
	require.EqualValues(t, 176, n)
	checkStore(t, c)
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	c := NewCache(CacheOptions{CapCount: 32}) // three records a slot
	defer c.Close()                           // always nil
	k := sameSlot(c, 6)
	for _, key := range k[:3] {
		applySet(c, key, "1")
	}
	_, found, err := c.Get(nil, []byte(k[0]), nil) // now 1 2 0
	require.NoError(t, err)
	require.True(t, found)
	applySet(c, k[3], "1") // 2 0 3
	require.False(t, has(t, c, k[1]))
	applySet(c, k[2], "longer than before") // 0 3 2
	applySet(c, k[4], "1")                  // 3 2 4
	require.False(t, has(t, c, k[0]))
	c.Apply(0, []update.Update{{Op: update.OpRemove, Key: []byte(k[3])}}) // 2 4
	applySet(c, k[5], "1")
	for _, i := range []int{2, 4, 5} {
		require.True(t, has(t, c, k[i]), i)
	}
	checkStore(t, c)
}

func TestCapacityInBytes(t *testing.T) {
	const limit = 1 << 20
	c := NewCache(CacheOptions{CapSize: limit})
	defer c.Close() // always nil
	for i := range 50000 {
		applySet(c, fmt.Sprint(i), string(make([]byte, i%300)))
	}
	n, _ := c.Count()
	require.Greater(t, n, int64(limit/400))
	require.Less(t, c.Size(), int64(limit*11/10))
	checkStore(t, c)
	keys := sameSlot(c, 1)
	applySet(c, keys[0], string(make([]byte, 2*limit)))
	require.True(t, has(t, c, keys[0]), "the record just set stays, whatever its size")
	checkStore(t, c)
}

// Updates of one Apply may drop records that it has set itself.
func TestCapacityWithinOneApply(t *testing.T) {
	c := NewCache(CacheOptions{CapCount: 16})
	defer c.Close() // always nil
	var ups []update.Update
	for i := range 1000 {
		ups = append(ups, set(fmt.Sprint(i), "value"))
	}
	c.Apply(0, ups)
	n, _ := c.Count()
	require.EqualValues(t, 32, n)
	checkStore(t, c)
}
