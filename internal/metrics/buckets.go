package metrics

import "math/bits"

// bounds are the upper ends of the buckets of times, in nanoseconds: 1 µs to 10 s.
var bounds = [...]int64{
	1e3, 2.5e3, 5e3, 1e4, 2.5e4, 5e4, 1e5, 2.5e5, 5e5, 1e6, 2.5e6, 5e6,
	1e7, 2.5e7, 5e7, 1e8, 2.5e8, 5e8, 1e9, 2.5e9, 5e9, 1e10,
}

const bucketCount = len(bounds) + 1 // the last one is for all longer times

// firstBucket has, for the number of bits of a time, the bucket of the shortest time with so many bits.
var firstBucket = func() (table [65]uint8) {
	for n := 1; n <= 64; n++ {
		for shortest := int64(1) << min(n-1, 62); int(table[n]) < len(bounds) && bounds[table[n]] < shortest; {
			table[n]++
		}
	}
	return table
}()

// bucketOf returns the bucket of a time in nanoseconds.
func bucketOf(ns int64) int {
	i := int(firstBucket[bits.Len64(uint64(max(0, ns)))])
	for i < len(bounds) && ns > bounds[i] {
		i++
	}
	return i
}

// Bounds returns the upper ends of the buckets of times, in seconds.
func Bounds() []float64 {
	seconds := make([]float64, len(bounds))
	for i, ns := range bounds {
		seconds[i] = float64(ns) / 1e9
	}
	return seconds
}
