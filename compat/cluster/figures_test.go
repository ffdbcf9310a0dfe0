package cluster

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// figures are the times without an answer, by misfortune.
type figures struct {
	gaps map[string][]time.Duration
}

func (f *figures) add(name string, gap time.Duration) {
	if f.gaps == nil {
		f.gaps = map[string][]time.Duration{}
	}
	f.gaps[name] = append(f.gaps[name], gap)
}

func (f *figures) String() string {
	text := "the longest time without an answer:"
	for _, name := range slices.Sorted(maps.Keys(f.gaps)) {
		all := slices.Sorted(slices.Values(f.gaps[name]))
		at := func(part float64) time.Duration {
			return all[int(part*float64(len(all)-1))].Round(time.Millisecond)
		}
		text += fmt.Sprintf("\n  %-12s %5d times, p50 %v, p99 %v, max %v", name, len(all), at(0.5), at(0.99), at(1))
	}
	return text
}
