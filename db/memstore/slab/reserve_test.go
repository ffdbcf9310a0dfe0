package slab

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// fill allocates blocks in so many chunks and writes all of them.
func fill(a *Arena, chunks int) []live {
	const size = 1024
	var all []live
	for i := range chunks * chunkSize / size {
		b := live{at: a.Alloc(size), size: size, fill: byte(i)}
		b.write(a)
		all = append(all, b)
	}
	return all
}

// used fills an arena of so many chunks on a Reserve and releases it.
func used(r *Reserve, chunks int) {
	a := NewOn(r)
	fill(a, chunks)
	a.Release()
}

func TestAnArenaTakesTheChunksOfTheOneBefore(t *testing.T) {
	r := NewReserve(8 * chunkSize)
	defer r.Close()
	a := NewOn(r)
	fill(a, 6)
	had := map[*byte]bool{} // whether the chunk is on huge pages
	for i, mem := range (*a.chunks.Load())[1:] {
		had[&mem[0]] = a.meta[i+1].huge
	}
	mapped := a.Mapped()
	a.Release()
	require.Equal(t, mapped, r.Bytes())
	b := a.Fresh()
	all := fill(b, 6)
	require.Equal(t, mapped, b.Mapped())
	require.Zero(t, r.Bytes())
	for i, mem := range (*b.chunks.Load())[1:] {
		huge, there := had[&mem[0]]
		require.True(t, there, "a chunk from elsewhere")
		require.Equal(t, huge || i*chunkSize >= hugeFrom, b.meta[i+1].huge)
	}
	for _, one := range all {
		one.check(t, b)
	}
	b.Release()
}

func TestAReserveKeepsItsLimit(t *testing.T) {
	r := NewReserve(2*chunkSize + 1)
	defer r.Close()
	a := NewOn(r)
	fill(a, 5)
	a.Release()
	require.EqualValues(t, 2*chunkSize, r.Bytes())
	require.Zero(t, a.Mapped())
}

// A block with a mapping of its own is of no use to others, and a chunk that has given pages back
// is one that the arena had no use for.
func TestAReserveKeepsWholeChunksOnly(t *testing.T) {
	r := NewReserve(8 * chunkSize)
	defer r.Close()
	a := NewOn(r)
	all := fill(a, 3)
	a.Alloc(chunkSize) // has a mapping of its own
	for _, b := range all[:len(all)/2] {
		a.Free(b.at)
	}
	a.cool(a.pool.head)
	a.Release()
	require.EqualValues(t, 2*chunkSize, r.Bytes())
}

// Arenas of small stores have small pages; their chunks must not make a large store slow for good.
func TestSmallChunksBecomeHugeInALargeArena(t *testing.T) {
	r := NewReserve(64 * chunkSize)
	defer r.Close()
	var small []*Arena
	for range 8 {
		a := NewOn(r)
		fill(a, 2)
		small = append(small, a)
	}
	for _, a := range small {
		a.Release()
	}
	a := NewOn(r)
	defer a.Release()
	fill(a, 16+hugeFrom/chunkSize)
	require.Zero(t, r.Bytes())
	for i, m := range a.meta[1:] {
		require.Equal(t, i*chunkSize >= hugeFrom, m.huge, "chunk %d", i)
	}
}

// A chunk from the Reserve has all its pages: a few large blocks need none of them.
func TestAFewLargeBlocksTakeNoReserve(t *testing.T) {
	r := NewReserve(8 * chunkSize)
	defer r.Close()
	used(r, 6)
	b := NewOn(r)
	defer b.Release()
	b.Alloc(maxSpanBlock + 1)
	b.Alloc(2*maxSpanBlock + 1)
	require.EqualValues(t, 6*chunkSize, r.Bytes())
	b.Alloc(100)
	require.EqualValues(t, 5*chunkSize, r.Bytes())
}

func TestChunksThatNobodyNeedsGoBack(t *testing.T) {
	r := NewReserve(8 * chunkSize)
	defer r.Close()
	used(r, 6)
	require.NotNil(t, r.timer)
	r.trim() // the time since the chunks came is not over yet
	require.EqualValues(t, 6*chunkSize, r.Bytes())
	used(r, 4)
	r.trim()
	require.EqualValues(t, 4*chunkSize, r.Bytes(), "two were never needed")
	r.trim()
	require.Zero(t, r.Bytes())
	require.Nil(t, r.timer)
}

func TestAClosedReserveKeepsNothing(t *testing.T) {
	r := NewReserve(8 * chunkSize)
	a, b := NewOn(r), NewOn(r)
	fill(a, 2)
	fill(b, 2)
	a.Release()
	r.Close()
	require.Zero(t, r.Bytes())
	require.Nil(t, r.timer)
	b.Release() // by a reader that is late
	require.Zero(t, r.Bytes())
	require.Nil(t, r.timer)
}
