package counter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/counter/frame"
	"gotycoon/services/counter"
)

func TestTheLargestCountersComeFirst(t *testing.T) {
	s, addr := start(t, counter.Options{Buckets: 8})
	c := dial(t, addr)
	for name, n := range map[string]uint32{"a1": 1, "a2": 7, "a3": 5, "b1": 9} {
		require.Equal(t, frame.OK, c.acquire(name, n, 100))
	}
	require.Equal(t, frame.OK, c.release("a2", 6))
	top, all := s.Counters("", 2)
	require.Equal(t, 4, all)
	require.Equal(t, []counter.Counter{{Name: "b1", Current: 9, Maximum: 9}, {Name: "a3", Current: 5, Maximum: 5}}, top)
	top, all = s.Counters("a", 100)
	require.Equal(t, 4, all)
	require.Equal(t, []counter.Counter{
		{Name: "a3", Current: 5, Maximum: 5}, {Name: "a2", Current: 1, Maximum: 7}, {Name: "a1", Current: 1, Maximum: 1},
	}, top)
}
