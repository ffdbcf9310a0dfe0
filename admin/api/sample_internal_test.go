package api

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/internal/metrics"
)

func TestQuantile(t *testing.T) {
	bounds := metrics.Bounds() // 1 µs, 2.5 µs, 5 µs, ...
	upTo := func(counts ...uint64) []uint64 {
		sums := make([]uint64, len(bounds))
		sum := uint64(0)
		for i := range sums {
			if i < len(counts) {
				sum += counts[i]
			}
			sums[i] = sum
		}
		return sums
	}
	require.Nil(t, quantile(upTo(), 0, 0.5), "there is nothing")
	require.InDelta(t, 0.5e-6, *quantile(upTo(10), 10, 0.5), 1e-12)
	require.InDelta(t, 1e-6+0.75e-6, *quantile(upTo(0, 100), 100, 0.5), 1e-12)
	require.InDelta(t, 5e-6, *quantile(upTo(0, 50, 50), 100, 1), 1e-12)
	require.InDelta(t, 2.5e-6, *quantile(upTo(0, 50, 0, 50), 100, 0.5), 1e-12)
	require.InDelta(t, bounds[len(bounds)-1], *quantile(upTo(), 5, 0.5), 1e-12, "all took longer than the last bound")
}

func TestTheRingKeepsTheLatest(t *testing.T) {
	var r ring
	require.Empty(t, r.since(0))
	for range keepSamples + 10 {
		r.add(Sample{})
	}
	all := r.since(0)
	require.Len(t, all, keepSamples)
	require.EqualValues(t, 11, all[0].N)
	require.EqualValues(t, keepSamples+10, all[len(all)-1].N)
	require.Len(t, r.since(keepSamples), 10)
	require.Empty(t, r.since(keepSamples+10))
}

// BenchmarkSample is what the charts cost each second.
func BenchmarkSample(b *testing.B) {
	c, err := db.Open([]string{"*"}, db.Options{})
	require.NoError(b, err)
	defer c.Close()
	s := &Sources{Catalog: c}
	for p := range 7 {
		var commands []string
		for i := range 20 {
			commands = append(commands, fmt.Sprint(i))
		}
		s.Protocols = append(s.Protocols, metrics.NewProtocol(fmt.Sprint(p), commands...))
	}
	last := s.totals()
	for b.Loop() {
		now := s.totals()
		now.since(last)
	}
}
