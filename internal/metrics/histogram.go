package metrics

import (
	"math/bits"
	"sync/atomic"
)

// bounds are the upper ends of the buckets of times, in nanoseconds: 1 µs to 10 s.
var bounds = [...]int64{
	1e3, 2.5e3, 5e3, 1e4, 2.5e4, 5e4, 1e5, 2.5e5, 5e5, 1e6, 2.5e6, 5e6,
	1e7, 2.5e7, 5e7, 1e8, 2.5e8, 5e8, 1e9, 2.5e9, 5e9, 1e10,
}

const bucketCount = len(bounds) + 1 // the last bucket is for all longer times

// bucketOf returns the bucket of a time in nanoseconds. Three bounds span a factor of 10, which is
// 3.3 bits, so the number of bits tells about where to begin the search.
func bucketOf(ns int64) int {
	const bitsBelow = 11 // bits of 1 µs, and one
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

// Histogram counts values. It is for values that occur seldom enough to share the counters. A nil
// Histogram counts nothing.
type Histogram struct {
	bounds []int64
	counts []atomic.Uint64
	sum    atomic.Int64
}

// NewHistogram returns a histogram with a bucket up to each of the bounds. The bounds must ascend.
func NewHistogram(upTo ...int64) *Histogram {
	return &Histogram{bounds: upTo, counts: make([]atomic.Uint64, len(upTo)+1)}
}

// NewTimes returns a histogram of times in nanoseconds, with the same buckets as requests.
func NewTimes() *Histogram { return NewHistogram(bounds[:]...) }

// Observe counts a value.
func (h *Histogram) Observe(value int64) {
	if h == nil {
		return
	}
	i := 0
	for i < len(h.bounds) && value > h.bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(value)
}

// Snapshot returns the number of values, their sum, and the number of values up to each bound. Sum
// and bounds are multiplied by scale: 1e-9 converts nanoseconds to seconds.
func (h *Histogram) Snapshot(scale float64) (count uint64, sum float64, upTo map[float64]uint64) {
	upTo = make(map[float64]uint64, len(h.bounds))
	for i := range h.counts {
		count += h.counts[i].Load()
		if i < len(h.bounds) {
			upTo[float64(h.bounds[i])*scale] = count
		}
	}
	return count, float64(h.sum.Load()) * scale, upTo
}
