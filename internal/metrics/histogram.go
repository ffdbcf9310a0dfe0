package metrics

import "sync/atomic"

// Histogram counts values that are seen seldom enough to share the counters. A nil Histogram counts nothing.
type Histogram struct {
	bounds []int64
	counts []atomic.Uint64
	sum    atomic.Int64
}

// NewHistogram returns a histogram with buckets up to each of the bounds, which ascend.
func NewHistogram(upTo ...int64) *Histogram {
	return &Histogram{bounds: upTo, counts: make([]atomic.Uint64, len(upTo)+1)}
}

// NewTimes returns a histogram of times in nanoseconds with the buckets of requests.
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

// Snapshot returns how many values there were, their sum, and how many were up to each bound. Scale multiplies sum and bounds: 1e-9
// makes seconds of nanoseconds.
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
