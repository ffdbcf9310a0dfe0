// Package histogram counts durations so finely that the quantiles of waits can be trusted.
package histogram

import (
	"math"
	"math/bits"
	"time"
)

// The buckets of a histogram: each octave of nanoseconds is cut into subBuckets equal parts, so a
// quantile is at most 1/subBuckets = 0.8 % above the true value, from 1 ns to the longest duration.
//
//	value     0 … 127    128 … 255   256 … 511   512 … 1023
//	bucket    0 … 127    128 … 255   256 … 383   384 … 511
//	width     1          1           2           4
//
// Histogram of internal/metrics has three buckets for a factor of ten: enough for a dashboard, but
// a p99 of it may be off by a factor of two.
const (
	subBits    = 7
	subBuckets = 1 << subBits
	buckets    = (64 - subBits) * subBuckets
)

// Histogram counts durations. It is for one goroutine.
type Histogram struct {
	counts  [buckets]uint64
	total   uint64
	longest time.Duration
}

// bucketOf returns the bucket of a duration.
func bucketOf(d time.Duration) int {
	v := uint64(max(0, d))
	shift := max(0, bits.Len64(v)-subBits-1)
	return shift*subBuckets + int(v>>shift)
}

// upperEnd returns the longest duration in a bucket.
func upperEnd(bucket int) time.Duration {
	shift := max(0, bucket/subBuckets-1)
	return time.Duration((uint64(bucket-shift*subBuckets)+1)<<shift - 1)
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.total++
	h.longest = max(h.longest, d)
}

// Merge adds what another histogram has counted.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
	h.longest = max(h.longest, other.longest)
}

// Quantile returns the duration that the share q of all durations does not exceed; q = 1 is the
// longest one, exactly. An empty histogram has 0.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(math.Ceil(q * float64(h.total)))
	seen := uint64(0)
	for i, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(upperEnd(i), h.longest)
		}
	}
	return h.longest
}

// Total returns how many durations were counted.
func (h *Histogram) Total() uint64 { return h.total }

// Above returns how many durations are longer than d, to the width of a bucket.
func (h *Histogram) Above(d time.Duration) (n uint64) {
	for i := bucketOf(d) + 1; i < buckets; i++ {
		n += h.counts[i]
	}
	return n
}
