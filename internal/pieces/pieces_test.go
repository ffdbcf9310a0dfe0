package pieces

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPiecesAreTheWhole(t *testing.T) {
	for _, size := range []int{0, 1, Size - 1, Size, Size + 1, 2 * Size, 3*Size + 7} {
		src := make([]byte, size)
		for i := range src {
			src[i] = byte(i ^ i>>8)
		}
		dst := make([]byte, size)
		require.Equal(t, size, Copy(dst, src))
		require.True(t, bytes.Equal(src, dst))
		require.Equal(t, min(size, 10), Copy(make([]byte, 10), src), "as much as there is room for")
		require.True(t, bytes.Equal(src, Clone(src)))
		for _, room := range []int{4, size, size + 100} {
			got := Append(append(make([]byte, 0, room+4), "head"...), src)
			require.Equal(t, "head", string(got[:4]))
			require.True(t, bytes.Equal(src, got[4:]))
		}
		var all []byte
		require.NoError(t, Each(src, func(p []byte) error {
			require.LessOrEqual(t, len(p), Size)
			all = append(all, p...)
			return nil
		}))
		require.True(t, bytes.Equal(src, all))
	}
	large := Append(nil, make([]byte, 5*Size))
	require.Equal(t, 5*Size, cap(large))
	require.Zero(t, testing.AllocsPerRun(10, func() { large = Append(large[:0], make([]byte, 10)) }))
}
