package metrics

import "math/bits"

// bounds are the upper ends of the buckets of times, in nanoseconds: 1 µs to 10 s.
var bounds = [...]int64{
	1e3, 2.5e3, 5e3, 1e4, 2.5e4, 5e4, 1e5, 2.5e5, 5e5, 1e6, 2.5e6, 5e6,
	1e7, 2.5e7, 5e7, 1e8, 2.5e8, 5e8, 1e9, 2.5e9, 5e9, 1e10,
}

const bucketCount = len(bounds) + 1 // the last one is for all longer times

// bucketOf returns the bucket of a time in nanoseconds. Three bounds are a factor of 10, which is 3.3 bits: so the search begins near
// its end.
func bucketOf(ns int64) int {
	const bitsBelow = 11 // of 1 µs, and one
	i := max(0, (bits.Len64(uint64(max(0, ns)))-bitsBelow)*9/10-1)
	for i < len(bounds) && ns > bounds[i] {
		i++
	}
	return min(i, len(bounds))
}

// Bounds returns the upper ends of the buckets of times, in seconds.
func Bounds() []float64 {
	seconds := make([]float64, len(bounds))
	for i, ns := range bounds {
		seconds[i] = float64(ns) / 1e9
	}
	return seconds
}
