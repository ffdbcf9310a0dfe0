package slab

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClassesAreAtMostAnEighthApart(t *testing.T) {
	require.LessOrEqual(t, len(classSizes), maxClasses)
	require.Equal(t, maxClassSize, classSizes[len(classSizes)-1])
	for i, size := range classSizes {
		require.Zero(t, size%unit)
		if i > 0 && size > fineBelow {
			require.LessOrEqual(t, size, classSizes[i-1]*9/8+unit)
		}
	}
}

func TestRoundGivesTheSmallestClass(t *testing.T) {
	for n := range maxClassSize + 1 {
		c := classOf(n)
		if classSizes[c] < n || c > 0 && classSizes[c-1] >= n {
			require.Failf(t, "wrong class", "%d bytes in class %d", n, c)
		}
	}
	require.Equal(t, maxClassSize+pageSize, Round(maxClassSize+1))
}

// live is what a test knows of a block.
type live struct {
	at   Addr
	size int
	fill byte
}

func (l live) content(a *Arena) []byte { return a.Bytes(l.at)[:l.size] }

func (l live) write(a *Arena) {
	b := l.content(a)
	for i := range b {
		b[i] = l.fill
	}
}

func (l live) check(t *testing.T, a *Arena) {
	t.Helper()
	require.Equal(t, l.size, bytes.Count(l.content(a), []byte{l.fill}), "block %x was overwritten", l.at)
}

func randomSize(r *rand.Rand) int {
	switch r.IntN(20) {
	case 0:
		return r.IntN(maxClassSize * 2)
	case 1:
		return r.IntN(64 << 10)
	default:
		return 1 + r.IntN(2000)
	}
}

func TestBlocksDoNotOverlapAndMemoryGoesBack(t *testing.T) {
	a := New()
	r := rand.New(rand.NewPCG(1, 2))
	var blocks []live
	var used int64
	for round := range 6 {
		grow := round%2 == 0
		for range 4000 {
			if grow || len(blocks) == 0 {
				b := live{size: randomSize(r), fill: byte(r.Int())}
				b.at = a.Alloc(b.size)
				require.True(t, b.at > 0 && b.at < 1<<AddrBits)
				b.write(a)
				used += int64(Round(b.size))
				blocks = append(blocks, b)
				continue
			}
			i := r.IntN(len(blocks))
			blocks[i].check(t, a)
			a.Free(blocks[i].at)
			used -= int64(Round(blocks[i].size))
			blocks[i] = blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
		}
		require.Equal(t, used, a.Used())
		require.GreaterOrEqual(t, a.Mapped(), a.Used())
	}
	require.Empty(t, blocks)
	require.LessOrEqual(t, a.Mapped(), int64(keepSpare*chunkSize))
	a.Release()
	require.Zero(t, a.Mapped())
	require.Zero(t, a.Used())
}

func TestFreedSpansServeOtherClasses(t *testing.T) {
	a := New()
	defer a.Release()
	var blocks []Addr
	for range chunkSize / 64 {
		blocks = append(blocks, a.Alloc(64))
	}
	before := a.Mapped()
	for _, at := range blocks[1:] { // the first one keeps its chunk
		a.Free(at)
	}
	for range (perChunk - 1) * spanSize / 1024 {
		a.Alloc(1024)
	}
	require.Equal(t, before, a.Mapped())
}

func TestArenaIsUsableAfterRelease(t *testing.T) {
	a := New()
	a.Alloc(100)
	a.Alloc(1 << 20)
	a.Release()
	at := a.Alloc(100)
	copy(a.Bytes(at), "hello")
	require.Equal(t, "hello", string(a.Bytes(at)[:5]))
	a.Release()
}

// An arena that shrinks gives the pages of empty spans back, also those that it kept when it was
// larger. A block in each chunk keeps the chunk.
func TestShrinkingArenaKeepsFewPages(t *testing.T) {
	a := New()
	defer a.Release()
	const blocks = 64 << 10
	var at []Addr
	for range blocks {
		at = append(at, a.Alloc(1000))
	}
	most := 0
	for i, b := range at {
		if i%(chunkSize/1024) > 0 {
			a.Free(b)
		}
		require.LessOrEqual(t, a.warm, a.keepWarm()+1)
		most = max(most, a.warm)
	}
	require.Greater(t, most, a.keepWarm(), "it kept more while more was in use")
	require.Equal(t, 64, a.keepWarm())
	require.Equal(t, a.warm, a.length(a.pool))
	for _, m := range a.meta[1:] {
		require.False(t, m.huge, "chunks with cold spans")
	}
}

func (a *Arena) length(l list) (n int) {
	for id := l.head; id != 0; id = a.spans[id].next {
		n++
	}
	return n
}

func BenchmarkAllocFree(b *testing.B) {
	a := New()
	defer a.Release()
	for b.Loop() {
		a.Free(a.Alloc(128))
	}
}
