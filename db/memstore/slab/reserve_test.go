package slab

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// fill allocates blocks in so many chunks and writes all of them.
func fill(a *Arena, chunks int) []live {
	const size = spanSize / 2
	var all []live
	for i := range chunks * perChunk * 2 {
		b := live{at: a.Alloc(size), size: size, fill: byte(i)}
		b.write(a)
		all = append(all, b)
	}
	return all
}

func TestAnArenaTakesTheChunksOfTheOneBefore(t *testing.T) {
	r := NewReserve(8 * chunkSize)
	defer r.Close()
	a := NewOn(r)
	fill(a, 6)
	had := map[*byte]bool{}
	for _, mem := range (*a.chunks.Load())[1:] {
		had[&mem[0]] = true
	}
	mapped := a.Mapped()
	a.Release()
	require.Equal(t, mapped, r.Bytes())
	b := a.Fresh()
	all := fill(b, 6)
	require.Equal(t, mapped, b.Mapped())
	require.Zero(t, r.Bytes())
	for _, mem := range (*b.chunks.Load())[1:] {
		require.True(t, had[&mem[0]], "a chunk from elsewhere")
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
	number := uint32(all[0].at >> chunkShift)
	a.meta[number].cool = true
	a.Release()
	require.EqualValues(t, 2*chunkSize, r.Bytes())
}

func TestChunksThatNobodyNeedsGoBack(t *testing.T) {
	r := NewReserve(8 * chunkSize)
	defer r.Close()
	a := NewOn(r)
	fill(a, 6)
	a.Release()
	r.trim() // the time since the chunks came is not over yet
	require.EqualValues(t, 6*chunkSize, r.Bytes())
	fill(a, 4)
	a.Release()
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
