package memstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
)

func TestPutTellsWhatWasThere(t *testing.T) {
	tree := NewTree()
	defer tree.Free()
	for _, value := range []string{"", "live", strings.Repeat("v", 3000), "live again"} {
		_, _, existed := tree.Put([]byte("key"), []byte(value))
		require.Equal(t, value != "", existed)
		first, size, existed := tree.Put([]byte("key"), []byte(value))
		require.True(t, existed)
		require.Equal(t, len(value), size)
		if value != "" {
			require.Equal(t, value[0], first)
		}
	}
	require.True(t, tree.Delete([]byte("key")))
	require.False(t, tree.Delete([]byte("key")))
	require.Zero(t, tree.Len())
	require.Zero(t, tree.Bytes())
}

func TestHeadsOfValues(t *testing.T) {
	tree := NewTree()
	defer tree.Free()
	for _, value := range []string{"", "abc", "abcd", strings.Repeat("abcd", 1000)} {
		tree.Put([]byte("key"), []byte(value))
		head, found := tree.GetHead([]byte("="), []byte("key"), 4)
		require.True(t, found)
		require.Equal(t, "="+value[:min(4, len(value))], string(head))
		tree.Update(nil, func(b *Batch) {
			b.Put(0, []byte("other"), []byte(value))
			got, found := b.Get([]byte("other"))
			require.True(t, found)
			require.Equal(t, value, string(got))
			_, found = b.Get([]byte("none"))
			require.False(t, found)
		})
	}
	head, found := tree.GetHead([]byte("="), []byte("none"), 4)
	require.False(t, found)
	require.Equal(t, "=", string(head))
}

func TestTreeIsUsableAfterFree(t *testing.T) {
	tree := NewTree()
	for range 3 {
		for i := range 5000 {
			tree.Put([]byte(fmt.Sprint(i)), []byte("value"))
		}
		require.Equal(t, 5000, tree.Len())
		tree.Free()
		require.Zero(t, tree.Len())
		require.Zero(t, tree.Mapped())
	}
}

func TestUpdateIsOneStep(t *testing.T) {
	tree := NewTree()
	defer tree.Free()
	tree.Put([]byte("a"), []byte("1"))
	beside(func() {
		for i := range 2000 {
			tree.Update(nil, func(b *Batch) {
				if i%2 == 0 {
					b.Clear()
				} else {
					b.t.remove([]byte("a"))
				}
				b.Put(0, []byte("a"), []byte(fmt.Sprint(i)))
			})
		}
	}, func() {
		if !tree.has([]byte("a")) {
			t.Error("half an Update was visible")
		}
	})
	checkTree(t, tree)
}

func TestSeparatorIsShort(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", "a", "a"},
		{"abc", "abd", "abd"},
		{"abc", "abczzz", "abcz"},
		{"apple", "banana", "b"},
		{"a", "a\x00\x00", "a\x00"},
	} {
		require.Equal(t, c.want, string(separator([]byte(c.a), []byte(c.b))))
	}
}

// Visits may stop a scan anywhere, in deep trees with long keys as well.
func TestScanStopsWhereVisitSays(t *testing.T) {
	tree := NewTree()
	defer tree.Free()
	key := func(i int) string { return fmt.Sprintf("%s%06d", strings.Repeat("k", i%600), i) }
	for i := range 3000 {
		tree.Put([]byte(key(i)), []byte("value"))
	}
	checkTree(t, tree)
	for stop := 1; stop < 3000; stop += 500 {
		n := 0
		require.NoError(t, tree.Scan(store.Start{Edge: true, Backward: stop%2 == 0}, func(_, _ []byte) bool {
			n++
			return n < stop
		}))
		require.Equal(t, stop, n)
	}
}
