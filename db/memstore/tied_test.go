package memstore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// At the end of a tree, keys that come in order before a last one have the same head all. Each
// place is found there, wherever the last insert was.
func TestKeysWithTheSameHead(t *testing.T) {
	for name, number := range map[string]func(i int) int{
		"ascending":  func(i int) int { return i },
		"descending": func(i int) int { return 999 - i },
		"random":     func(int) int { return rand.IntN(1000) },
	} {
		t.Run(name, func(t *testing.T) {
			tree := NewTree()
			defer tree.Free()
			key := func(n int) []byte { return fmt.Appendf(nil, "quota journal %06d", n) }
			known := map[int]bool{}
			for i := range 1000 {
				n := number(i)
				_, _, existed := tree.Put(key(n), fmt.Append(nil, i))
				require.Equal(t, known[n], existed, "%d", n)
				known[n] = true
				_, _, existed = tree.Put([]byte("quota state"), fmt.Append(nil, i))
				require.Equal(t, i > 0, existed)
				if i%97 == 0 {
					delete(known, n)
					require.True(t, tree.has(key(n)))
					require.True(t, tree.remove(key(n)))
				}
				for _, near := range []int{n - 1, n, n + 1, rand.IntN(1000)} {
					require.Equal(t, known[near], tree.has(key(near)), "%d", near)
				}
			}
			checkTree(t, tree)
		})
	}
}
