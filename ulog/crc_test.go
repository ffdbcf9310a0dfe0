package ulog

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The checksum of two parts is that of the whole, wherever it is cut.
func TestJoinCRC(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 2, 31, 4096, 1<<20 + 7} {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		for _, cut := range []int{0, size / 3, size, rnd.IntN(size + 1)} {
			first, second := crc32.Checksum(b[:cut], castagnoli), crc32.Checksum(b[cut:], castagnoli)
			require.Equal(t, crc32.Checksum(b, castagnoli), joinCRC(first, second, size-cut), "%d of %d", cut, size)
		}
	}
}
