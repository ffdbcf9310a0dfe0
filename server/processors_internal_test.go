package server

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The spare processors come with the first page that is read, stay while pages are read, and go
// afterwards. The number is set only where it changes: that stops the whole process.
func TestSpareProcessorsStayWhilePagesAreCold(t *testing.T) {
	var faults int64
	var used []bool
	p := &processors{faults: func() int64 { return faults }, use: func(spare bool) { used = append(used, spare) }, spare: true}
	now := time.Unix(1000, 0)
	look := func(after time.Duration) []bool {
		now, used = now.Add(after), nil
		p.look(now)
		return used
	}
	require.Equal(t, []bool{false}, look(0), "no page was read")
	require.Empty(t, look(time.Hour))
	faults = 1
	require.Equal(t, []bool{true}, look(processorsEvery))
	require.Empty(t, look(coldFor-time.Millisecond))
	faults = 2
	require.Empty(t, look(0), "one more page")
	require.Empty(t, look(coldFor-time.Millisecond))
	require.Equal(t, []bool{false}, look(time.Millisecond))
	require.Empty(t, look(time.Hour))

	p = &processors{always: true, faults: func() int64 { return 0 }, spare: true} // without use: there is no change
	p.look(now)
}

// The spare processors are more than Go's own choice, which returns without them.
func TestTheNumberOfProcessors(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	runtime.SetDefaultGOMAXPROCS()
	own := runtime.GOMAXPROCS(0)
	for range 2 {
		useProcessors(true)
		require.Equal(t, own+max(1, own/4), runtime.GOMAXPROCS(0))
		useProcessors(false)
		require.Equal(t, own, runtime.GOMAXPROCS(0))
	}
	require.GreaterOrEqual(t, majorFaults(), int64(0))
}
