package slab

import (
	"slices"
)

const (
	unit      = 8  // bytes; blocks begin at multiples of it
	spanShift = 13 // Addr to span
	spanSize  = unit << spanShift
	chunkSize = unit << chunkShift
	pageSize  = 4 << 10 // of the operating system
)

const (
	maxClasses   = 96                    // more than there are
	minBlock     = 16                    // bytes
	fineBelow    = 128                   // classes are 8 bytes apart up to here
	blocksMin    = 8                     // a span holds at least so many blocks
	maxSpanBlock = spanSize / blocksMin  // the largest class in spans of spanSize
	maxClassSize = chunkSize / blocksMin // the largest class
	lookupStep   = 1 << 10               // grain of the second lookup table
)

// classSizes are the block sizes in ascending order. From fineBelow on they divide a span without
// rest: spanSize/k, then chunkSize/k, with k chosen so that neighbours are at most an eighth apart.
var classSizes = makeClassSizes()

// smallLookup has the class of sizes up to maxSpanBlock in units of 8 bytes, bigLookup the class of
// larger sizes in lookupStep.
var (
	smallLookup = makeLookup(unit, maxSpanBlock)
	bigLookup   = makeLookup(lookupStep, maxClassSize)
)

func makeClassSizes() []int {
	sizes := append(divisors(chunkSize, maxSpanBlock), divisors(spanSize, fineBelow)...)
	for n := fineBelow - unit; n >= minBlock; n -= unit {
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// divisors returns parts of whole from an eighth of it down to least.
func divisors(whole, least int) []int {
	var sizes []int
	for k := blocksMin; whole/k >= least; k += max(1, k/8) {
		sizes = append(sizes, whole/k&^(unit-1))
	}
	return sizes
}

// makeLookup returns the class of every size up to limit in units of step: the smallest class that
// holds the whole unit.
func makeLookup(step, limit int) []uint8 {
	table := make([]uint8, limit/step+1)
	c := 0
	for i := range table {
		for classSizes[c] < min(i*step, limit) {
			c++
		}
		table[i] = uint8(c)
	}
	return table
}

// classOf returns the class of blocks that hold n bytes, n <= maxClassSize.
func classOf(n int) int {
	if n <= maxSpanBlock {
		return int(smallLookup[(n+unit-1)/unit])
	}
	c := int(bigLookup[(n-1)/lookupStep])
	for classSizes[c] < n {
		c++
	}
	return c
}

// Round returns the size of the block that Alloc(n) returns, so that a caller can use all of it.
func Round(n int) int {
	if n > maxClassSize {
		return roundOwn(n)
	}
	return classSizes[classOf(n)]
}

func roundOwn(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }
