package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The spare processors come with the first page that is read, stay while pages are read, and go
// afterwards. The number is set only where it changes: that stops the whole process.
func TestSpareProcessorsStayWhilePagesAreCold(t *testing.T) {
	var faults int64
	var set []int
	p := &processors{normal: 2, cold: 3, faults: func() int64 { return faults }, set: func(n int) { set = append(set, n) }}
	now := time.Unix(1000, 0)
	look := func(after time.Duration) []int {
		now, set = now.Add(after), nil
		p.look(now)
		return set
	}
	require.Equal(t, []int{2}, look(0), "no page was read")
	require.Empty(t, look(time.Hour))
	faults = 1
	require.Equal(t, []int{3}, look(processorsEvery))
	require.Empty(t, look(coldFor-time.Millisecond))
	faults = 2
	require.Empty(t, look(0), "one more page")
	require.Empty(t, look(coldFor-time.Millisecond))
	require.Equal(t, []int{2}, look(time.Millisecond))
	require.Empty(t, look(time.Hour))
}
